// The end of a SHA-256 message: its padding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace mmkey::detail {

/// Writes the big-endian words of a SHA-256 state.
inline void store_state(const std::uint32_t state[8], std::uint8_t out[32]) noexcept {
    for (int i = 0; i < 8; ++i) {
        const std::uint32_t word = __builtin_bswap32(state[i]);
        std::memcpy(out + 4 * i, &word, 4);
    }
}

/// Pads the last `used` bytes (under 64) of a message of `length` bytes, in place; gives how many blocks they now are.
inline std::size_t pad(std::uint8_t tail[128], std::size_t used, std::uint64_t length) noexcept {
    const std::size_t blocks = used < 56 ? 1 : 2;
    tail[used] = 0x80;
    std::memset(tail + used + 1, 0, 64 * blocks - used - 9);
    const std::uint64_t bits = __builtin_bswap64(8 * length);
    std::memcpy(tail + 64 * blocks - 8, &bits, 8);
    return blocks;
}

}  // namespace mmkey::detail
