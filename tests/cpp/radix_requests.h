// Requests for tests of the prefix index, made by hand: places are stand-ins, distinct where identity or ranges are.
#pragma once

#include "mmkey/request.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace mmkey::test {

/// An item of a test: an identity and the ranges that it fills.
struct Placed {
    std::uint32_t identity;
    std::vector<Range> ranges;
};

/// 32 bytes that differ where the text does (FNV-1a, four times with other starts).
inline Digest stand_in(const std::string& text) {
    Digest digest{};
    for (std::size_t part = 0; part < 4; ++part) {
        std::uint64_t hash = 0xcbf29ce484222325u + part;
        for (const char c : text) hash = (hash ^ static_cast<std::uint8_t>(c)) * 0x100000001b3u;
        for (std::size_t i = 0; i < 8; ++i) digest[part * 8 + i] = static_cast<std::uint8_t>(hash >> (8 * i));
    }
    return digest;
}

inline Prepared request(const std::vector<std::uint32_t>& ids, std::uint64_t block_size,
                        const std::vector<Placed>& items = {}, const std::string& root = "engine") {
    Prepared prepared;
    std::shared_ptr<std::uint32_t[]> data(new std::uint32_t[ids.size() + 1]);
    std::copy(ids.begin(), ids.end(), data.get());
    prepared.token_ids = TokenIds(data, ids.size());
    prepared.seed = {Strategy::C, Algorithm::sha256, block_size, stand_in(root)};
    for (std::size_t i = 0; i < items.size(); ++i) {
        std::string place = std::to_string(items[i].identity);
        std::uint64_t filled = 0;
        for (const Range& range : items[i].ranges) {
            place +=
                "," + std::to_string(range.offset - items[i].ranges[0].offset) + "+" + std::to_string(range.length);
            prepared.normal.spans.push_back({range.offset, range.length, filled, static_cast<std::uint32_t>(i)});
            filled += range.length;
        }
        prepared.identities.places.push_back(stand_in(place));
    }
    std::sort(prepared.normal.spans.begin(), prepared.normal.spans.end(),
              [](const Span& a, const Span& b) { return a.offset < b.offset; });
    return prepared;
}

inline std::vector<std::uint32_t> count_up(std::uint32_t from, std::size_t size) {
    std::vector<std::uint32_t> ids(size);
    for (std::size_t i = 0; i < size; ++i) ids[i] = from + static_cast<std::uint32_t>(i);
    return ids;
}

inline std::vector<std::int64_t> slots_from(std::int64_t from, std::size_t count) {
    std::vector<std::int64_t> slots(count);
    for (std::size_t i = 0; i < count; ++i) slots[i] = from + static_cast<std::int64_t>(i);
    return slots;
}

/// A request of few ids, few items and few roots, so that two often share a prefix and part in any way.
inline Prepared random_request(std::mt19937& random, std::uint64_t block_size) {
    const auto below = [&](std::uint64_t n) { return static_cast<std::uint32_t>(random() % n); };
    std::vector<std::uint32_t> ids(below(8 * block_size + 1));
    // Long equal stretches with a change here and there.
    for (std::uint32_t& id : ids) id = below(6 * block_size) == 0 ? 1 : 0;
    std::vector<Placed> items;
    std::uint64_t at = below(3) == 0 ? 0 : ids.size();
    std::size_t last = 99;
    while ((at += below(2 * block_size)) < ids.size()) {
        const std::uint64_t length = std::min<std::uint64_t>(1 + below(3 * block_size), ids.size() - at);
        std::size_t item = below(static_cast<std::uint64_t>(items.size()) + 1);
        const bool touches = item < items.size() && item == last && items[item].ranges.back().end() == at;
        if (item == items.size() || touches) {
            item = items.size();
            items.push_back({below(2), {}});
        }
        items[item].ranges.push_back({at, length});
        at += length;
        last = item;
    }
    return request(ids, block_size, items, below(4) == 0 ? "other engine" : "engine");
}

}  // namespace mmkey::test
