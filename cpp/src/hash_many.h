// Many messages on one thread, side by side in lanes.
#pragma once

#include "mmkey/hash.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace mmkey::detail {

inline std::size_t size_of(const Message& message) noexcept { return message.head.size() + message.body.size(); }

/// Copies a short run of bytes without a call: pieces of 16, of which the last may overlap the one before.
inline void copy_short(std::uint8_t* out, const std::uint8_t* in, std::size_t size) noexcept {
    if (size < 16) {
        if (size >= 8) {
            std::uint64_t first, last;
            std::memcpy(&first, in, 8);
            std::memcpy(&last, in + size - 8, 8);
            std::memcpy(out, &first, 8);
            std::memcpy(out + size - 8, &last, 8);
        } else {
            for (std::size_t i = 0; i < size; ++i) out[i] = in[i];
        }
        return;
    }
    for (std::size_t i = 0; i + 16 < size; i += 16) std::memcpy(out + i, in + i, 16);
    std::memcpy(out + size - 16, in + size - 16, 16);
}

/// Bytes [from, from + size) of a message.
inline void copy_from(const Message& message, std::size_t from, std::size_t size, std::uint8_t* out) noexcept {
    const std::size_t in_head = from < message.head.size() ? message.head.size() - from : 0;
    const std::size_t n = size < in_head ? size : in_head;
    if (n != 0) std::memcpy(out, message.head.data() + from, n);
    if (size != n) std::memcpy(out + n, message.body.data() + (from + n - message.head.size()), size - n);
}

/// out[i] is the digest of messages[i], for every i of `order`, in which they are begun.
void sha256_many(std::span<const Message> messages, std::span<const std::uint32_t> order, std::span<Digest> out);
void blake3_many(std::span<const Message> messages, std::span<const std::uint32_t> order, std::span<Digest> out);

}  // namespace mmkey::detail
