// What a request is before its items are known by digest; shared by the files that bind requests and engines.
#pragma once

#include "mmkey/request.h"

#include <cstdint>
#include <optional>
#include <vector>

struct RequestData {
    mmkey::TokenIds token_ids;
    std::optional<std::vector<mmkey::Range>> layout;
    std::optional<std::vector<std::uint64_t>> order;
};
