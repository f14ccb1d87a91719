#include "hash_many.h"

#include "hash_pixels.h"
#include "hash_threads.h"
#include "hash_tree.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace mmkey {

using namespace detail;

namespace {

constexpr std::size_t large = 4096;               // bytes from which the order of messages matters
constexpr std::size_t worth_threads = 32 * 1024;  // bytes for each thread: below, waking it takes longer

/// Longest first, as far as that matters: short messages stay in their order.
void sort_large(std::span<const Message> messages, std::vector<std::uint32_t>& order) {
    const auto is_large = [&](std::uint32_t i) { return size_of(messages[i]) >= large; };
    const auto small = std::stable_partition(order.begin(), order.end(), is_large);
    std::stable_sort(order.begin(), small, [&](auto a, auto b) { return size_of(messages[a]) > size_of(messages[b]); });
}

/// Deals sorted messages out so that every share has about as many bytes: each to the share that has least.
std::vector<std::vector<std::uint32_t>> deal(std::span<const Message> messages, const std::vector<std::uint32_t>& order,
                                             std::size_t shares) {
    std::vector<std::vector<std::uint32_t>> dealt(shares);
    std::vector<std::size_t> bytes(shares);
    for (const std::uint32_t i : order) {
        const auto least = static_cast<std::size_t>(std::min_element(bytes.begin(), bytes.end()) - bytes.begin());
        dealt[least].push_back(i);
        bytes[least] += size_of(messages[i]) + 64;
    }
    return dealt;
}

}  // namespace

void digest_many(Algorithm algorithm, std::span<const Message> messages, std::span<Digest> out, unsigned threads) {
    if (out.size() != messages.size()) throw std::invalid_argument("digest_many: one digest a message");
    if (messages.size() > 0xffffffff) throw std::length_error("digest_many: 2^32 messages or more");
    std::vector<std::uint32_t> order(messages.size());
    std::iota(order.begin(), order.end(), 0u);
    std::size_t total = 0;
    bool any_large = false, any_pixels = false;
    for (const Message& message : messages) {
        total += size_of(message) + 64;
        any_large = any_large || size_of(message) >= large;
        any_pixels = any_pixels || message.pixels;
    }
    if (any_pixels) return digest_with_pixels(algorithm, messages, out, threads);
    if (any_large) sort_large(messages, order);
    const auto many = algorithm == Algorithm::sha256 ? sha256_many : blake3_many;
    const std::size_t shares = std::min<std::size_t>({threads, messages.size(), total / worth_threads});
    if (algorithm == Algorithm::blake3 && threads > 1 && !order.empty()) {
        // What is longer than a fair share would keep one thread busy when the others are done: all of them take it first.
        const auto fair = std::find_if(order.begin(), order.end(),
                                       [&](std::uint32_t i) { return size_of(messages[i]) <= total / threads; });
        for (auto i = order.begin(); i != fair; ++i) out[*i] = blake3_digest(messages[*i], threads);
        order.erase(order.begin(), fair);
    }
    if (shares <= 1) {
        many(messages, order, out);
        return;
    }
    const auto dealt = deal(messages, order, shares);
    parallel_for(threads, shares, [&](std::size_t i) { many(messages, dealt[i], out); });
}

}  // namespace mmkey
