// Pixels of four bytes of which three count: packed piece by piece into a cache-sized buffer and hashed from there, so that
// the packed picture never goes to memory; side by side in lanes only where that is worth a copy.
#include "hash_pixels.h"

#include "hash_dispatch.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <vector>

namespace mmkey::detail {

namespace {

constexpr std::size_t small = 16 * 1024;  // packed bytes up to which a picture does not fill the lanes by itself
constexpr std::size_t piece = 32 * 1024;  // a power of two: BLAKE3 then takes each piece as one subtree
constexpr std::size_t thread_piece = 256 * 1024;
constexpr unsigned most_threads = 16;

std::size_t packed_size(Bytes pixels) { return pixels.size() / 4 * 3; }

template <typename Update>
void in_pieces(const Message& message, std::size_t size, Update&& update) {
    const auto pack = dispatch().pack_pixels;
    const auto buffer = std::make_unique_for_overwrite<std::uint8_t[]>(size + 2);
    std::size_t held = 0;
    if (message.head.size() < size) {
        held = message.head.size();
        if (held != 0) std::memcpy(buffer.get(), message.head.data(), held);
    } else {
        update(message.head);
    }
    const std::uint8_t* pixels = message.body.data();
    for (std::size_t left = message.body.size() / 4; left != 0;) {
        const std::size_t count = std::min(left, (size - held + 2) / 3);
        pack(pixels, buffer.get() + held, count);
        pixels += 4 * count, held += 3 * count, left -= count;
        if (held < size) break;
        update(Bytes(buffer.get(), size));
        held -= size;
        std::memcpy(buffer.get(), buffer.get() + size, held);
    }
    update(Bytes(buffer.get(), held));
}

Digest streamed(Algorithm algorithm, const Message& message, unsigned threads) {
    if (algorithm == Algorithm::sha256) {
        Sha256 hasher;
        in_pieces(message, piece, [&](Bytes bytes) { hasher.update(bytes); });
        return hasher.digest();
    }
    Blake3 hasher;
    in_pieces(message, threads == 1 ? piece : thread_piece * std::bit_ceil(std::min(threads, most_threads)),
              [&](Bytes bytes) { hasher.update(bytes, threads); });
    return hasher.digest();
}

}  // namespace

void digest_with_pixels(Algorithm algorithm, std::span<const Message> messages, std::span<Digest> out,
                        unsigned threads) {
    std::vector<Message> rest;
    std::vector<std::size_t> places;
    std::size_t room = 0;
    for (std::size_t i = 0; i < messages.size(); ++i) {
        const Message& message = messages[i];
        const bool alone = algorithm == Algorithm::blake3 ? packed_size(message.body) > small : messages.size() == 1;
        if (message.pixels && alone) {
            out[i] = streamed(algorithm, message, threads);
            continue;
        }
        if (message.pixels) room += packed_size(message.body);
        rest.push_back(message);
        places.push_back(i);
    }
    const auto packed = std::make_unique_for_overwrite<std::uint8_t[]>(room);
    std::uint8_t* to = packed.get();
    for (Message& message : rest) {
        if (!message.pixels) continue;
        const std::size_t size = packed_size(message.body);
        dispatch().pack_pixels(message.body.data(), to, message.body.size() / 4);
        message = {message.head, {to, size}};
        to += size;
    }
    std::vector<Digest> digests(rest.size());
    digest_many(algorithm, rest, digests, threads);
    for (std::size_t i = 0; i < rest.size(); ++i) out[places[i]] = digests[i];
}

}  // namespace mmkey::detail
