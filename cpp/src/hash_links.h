// The last block of a chain's link, all but the parent in it.
#pragma once

#include "mmkey/hash.h"

#include "kernels/kernels.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace mmkey::detail {

/// Whether all but the last compression of a link with a prefix of `size` bytes is free of its parent.
inline bool one_dependent_compression(Algorithm algorithm, std::size_t size) noexcept {
    if (algorithm == Algorithm::sha256) return size % 64 + 32 + 9 <= 64;  // with its padding
    return size % 64 + 32 <= 64 && size + 32 <= Blake3::chunk_size;
}

/// Everything of a link but its state: `rest` is the last `rest_size` bytes of a prefix of `size`, those that fill no block,
/// with 32 readable bytes from there.
inline void finish_link(Algorithm algorithm, kernel::ChainLink& link, const std::uint8_t* rest, std::size_t rest_size,
                        std::size_t size) noexcept {
    struct Mask {
        std::uint8_t bytes[64];
        constexpr Mask() : bytes{} {
            for (int i = 0; i < 32; ++i) bytes[i] = 0xff;
        }
    };
    static constexpr Mask mask;
    for (std::size_t i = 0; i < 32; i += 8) {
        std::uint64_t word, kept;
        std::memcpy(&word, rest + i, 8);
        std::memcpy(&kept, mask.bytes + 32 - rest_size + i, 8);
        word &= kept;
        std::memcpy(link.tail + i, &word, 8);
    }
    std::memset(link.tail + 32, 0, 32);
    link.offset = static_cast<std::uint32_t>(rest_size);
    if (algorithm == Algorithm::sha256) {
        link.tail[rest_size + 32] = 0x80;
        const std::uint64_t bits = __builtin_bswap64(8 * (size + 32));
        std::memcpy(link.tail + 56, &bits, 8);
    } else {
        link.row[0] = link.row[1] = 0;
        link.row[2] = static_cast<std::uint32_t>(rest_size + 32);
        link.row[3] = kernel::chunk_end | kernel::root | (size < 64 ? kernel::chunk_start : 0);
    }
}

}  // namespace mmkey::detail
