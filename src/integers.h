// Integers from Python, exactly: what is a bool, a float or a text is none, whatever Python would make of it.
#pragma once

#include "mmkey/request.h"

#include <pybind11/pybind11.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// An int, a subclass of it but bool, or a NumPy integer. Throws UnsupportedType for anything else and InvalidRequest
/// outside [0, top], both under `field`.
std::uint64_t to_uint(pybind11::handle object, const std::string& field, std::uint64_t top = UINT64_MAX);

/// Token ids from a list, tuple, range or any one-dimensional integer array (buffer, __array_interface__, DLPack on the
/// CPU), copied once. Throws under `field`, or `field[i]` for one id.
mmkey::TokenIds to_token_ids(pybind11::handle object, const std::string& field);

/// Block numbers from a list, tuple or one-dimensional integer array: in [0, 2**63). Throws under `field[i]`.
std::vector<std::int64_t> to_slots(pybind11::handle object, const std::string& field);

/// A list, tuple or one-dimensional array of integers, or nothing for None.
std::optional<std::vector<std::uint64_t>> to_numbers(pybind11::handle object, const std::string& field);

/// A list, tuple or array of (offset, length) pairs, or nothing for None.
std::optional<std::vector<mmkey::Range>> to_layout(pybind11::handle object, const std::string& field);
