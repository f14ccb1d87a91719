// Byte views, digests and their text: the vocabulary that every other header speaks.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mmkey {

static_assert(std::endian::native == std::endian::little, "token ids and arrays are hashed in place as little-endian");

/// A read-only view of bytes; whoever makes it keeps the memory alive and unwritten while it is in use.
using Bytes = std::span<const std::uint8_t>;

/// The 32 bytes that SHA-256 gives, and BLAKE3 by default.
using Digest = std::array<std::uint8_t, 32>;

inline Bytes as_bytes(std::string_view text) noexcept {
    return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

inline std::vector<std::uint8_t> to_vector(Bytes bytes) { return {bytes.begin(), bytes.end()}; }

/// Lowercase hexadecimal, two characters a byte.
std::string to_hex(Bytes bytes);

}  // namespace mmkey
