// The JSON vectors that C++ and Python tests share.
#pragma once

#include <nlohmann/json.hpp>

#include <fstream>
#include <stdexcept>
#include <string>

inline nlohmann::json read_vectors(const std::string& file) {
    std::ifstream in(std::string(MMKEY_VECTORS "/") + file);
    if (!in) throw std::runtime_error("no vectors: " + file);
    return nlohmann::json::parse(in);
}
