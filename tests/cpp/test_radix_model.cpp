// The prefix index against a naive model: a map from prefixes to what is known of their last block.
#include "mmkey/radix_index.h"

#include "radix_requests.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

using namespace mmkey;
using namespace mmkey::test;

namespace {

using Slots = std::vector<std::int64_t>;
using Prefixes = std::vector<std::string>;  // of one request, from one block to all

/// What each block's key is made of, up to and with that block.
Prefixes prefixes(const Prepared& prepared) {
    const std::uint64_t size = prepared.seed.block_size;
    std::string text(prepared.seed.root.begin(), prepared.seed.root.end());
    Prefixes result;
    for (std::uint64_t block = 0; block < prepared.full_blocks(); ++block) {
        text += "|";
        for (std::uint64_t i = 0; i < size; ++i)
            text += std::to_string(prepared.token_ids.data()[block * size + i]) + " ";
        for (const Span& span : prepared.normal.spans) {
            const std::uint64_t start = std::max(span.offset, block * size);
            const std::uint64_t end = std::min(span.end(), (block + 1) * size);
            if (start >= end) continue;
            const Digest& place = prepared.identities.places[span.item];
            text += "[" + std::string(place.begin(), place.end()) + std::to_string(start - block * size) + "," +
                    std::to_string(span.filled + start - span.offset) + "," + std::to_string(end - start) + "]";
        }
        result.push_back(text);
    }
    return result;
}

struct Model {
    struct Block {
        std::int64_t slot = 0;
        std::uint64_t used = 0;
        std::size_t holds = 0;
        std::size_t children = 0;
        std::string parent;
    };
    std::map<std::string, Block> blocks;
    std::uint64_t now = 0;

    std::size_t match(const Prefixes& path, std::size_t limit) const {
        std::size_t n = 0;
        while (n < std::min(limit, path.size()) && blocks.contains(path[n])) ++n;
        return n;
    }
    Slots slots(const Prefixes& path, std::size_t n) const {
        Slots result;
        for (std::size_t i = 0; i < n; ++i) result.push_back(blocks.at(path[i]).slot);
        return result;
    }
    void use(const Prefixes& path, std::size_t n) {
        ++now;
        for (std::size_t i = 0; i < n; ++i) blocks.at(path[i]).used = now;
    }
    void hold(const Prefixes& path, std::size_t n, int by) {
        for (std::size_t i = 0; i < n; ++i) blocks.at(path[i]).holds += static_cast<std::size_t>(by);
    }
    std::size_t held() const {
        return static_cast<std::size_t>(
            std::count_if(blocks.begin(), blocks.end(), [](const auto& entry) { return entry.second.holds != 0; }));
    }
    std::int64_t erase(const std::string& prefix) {
        const Block block = blocks.at(prefix);
        blocks.erase(prefix);
        if (const auto parent = blocks.find(block.parent); parent != blocks.end()) --parent->second.children;
        return block.slot;
    }
    /// The leaf used longest ago, not held and not in `keep`.
    std::optional<std::int64_t> evict_one(const Prefixes& keep) {
        const std::string* oldest = nullptr;
        for (const auto& [prefix, block] : blocks) {
            if (block.children != 0 || block.holds != 0 || std::ranges::find(keep, prefix) != keep.end()) continue;
            if (oldest == nullptr || block.used < blocks.at(*oldest).used) oldest = &prefix;
        }
        if (oldest == nullptr) return std::nullopt;
        return erase(std::string(*oldest));
    }
    void add(const Prefixes& path, std::size_t i, std::int64_t slot) {
        Block block;
        block.slot = slot;
        if (i != 0) {
            block.parent = path[i - 1];
            ++blocks.at(path[i - 1]).children;
        }
        blocks.emplace(path[i], block);
    }
};

/// The most blocks, of the first `n`, that end inside no item.
std::size_t whole_items(const Prepared& prepared, std::size_t n) {
    const std::uint64_t size = prepared.seed.block_size;
    while (true) {
        bool inside = false;
        for (std::uint32_t item = 0; item < prepared.identities.places.size(); ++item) {
            std::uint64_t first = ~std::uint64_t{0}, end = 0;
            for (const Span& span : prepared.normal.spans) {
                if (span.item != item) continue;
                first = std::min(first, span.offset);
                end = std::max(end, span.end());
            }
            if (first < n * size && n * size < end) {
                n = first / size;
                inside = true;
            }
        }
        if (!inside) return n;
    }
}

class Play {
  public:
    Play(std::uint64_t block_size, std::optional<std::uint64_t> capacity, std::uint64_t mask, std::uint32_t seed)
        : block_size_(block_size), capacity_(capacity), random_(seed), index_({block_size, capacity, nullptr, mask}) {}

    void step() {
        switch (below(12)) {
            case 0:
            case 1:
            case 2:
            case 3:
                insert();
                break;
            case 4:
            case 5:
            case 6:
                match();
                break;
            case 7:
            case 8:
                release();
                break;
            case 9:
                evict(below(6));
                break;
            case 10:
                remove();
                break;
            default:
                if (below(40) == 0)
                    clear();
                else
                    hold_later();
                break;
        }
        index_.check();
        const auto stats = index_.stats();
        REQUIRE(stats.blocks == model_.blocks.size());
        REQUIRE(stats.held == model_.held());
        REQUIRE(stats.evictable == model_.blocks.size() - model_.held());
        REQUIRE(stats.holds ==
                static_cast<std::size_t>(std::ranges::count_if(held_, [](const Held& h) { return h.n; })));
    }

    void finish() {
        while (!held_.empty()) release();
        evict(model_.blocks.size() + 1);
        REQUIRE(index_.size() == 0);
        index_.check();
    }

  private:
    struct Held {
        Prefixes path;
        std::size_t n;
        RadixIndex::Hold hold;
    };

    std::size_t below(std::size_t n) { return random_() % n; }

    Prepared any_request() {
        if (!recent_.empty() && below(3) != 0) return recent_[below(recent_.size())];
        recent_.push_back(random_request(random_, block_size_));
        if (recent_.size() > 40) recent_.erase(recent_.begin());
        return recent_.back();
    }

    void insert() {
        const Prepared prompt = any_request();
        const Prefixes path = prefixes(prompt);
        const std::size_t there = model_.match(path, path.size());
        Slots given = model_.slots(path, there);
        Slots duplicates;
        for (std::int64_t& slot : given) {
            if (below(4) == 0) duplicates.push_back(slot = next_slot_++);
        }
        while (given.size() < path.size()) given.push_back(next_slot_ += 1 + static_cast<std::int64_t>(below(3)));
        ++next_slot_;
        const bool hold = below(3) == 0;

        const std::size_t fresh = path.size() - there;
        const std::size_t blocks = model_.blocks.size();
        std::size_t room = 0;
        for (const auto& [prefix, block] : model_.blocks) {
            if (block.holds == 0 && std::find(path.begin(), path.begin() + there, prefix) == path.begin() + there)
                ++room;
        }
        const std::size_t excess = capacity_ && blocks + fresh > *capacity_ ? blocks + fresh - *capacity_ : 0;
        if (excess > room) {
            const auto before = index_.stats();
            REQUIRE_THROWS_AS(index_.insert(prompt, given, hold), CapacityError);
            REQUIRE(index_.stats().bytes == before.bytes);
            return;
        }
        Slots evicted;
        for (std::size_t i = 0; i < excess; ++i) evicted.push_back(*model_.evict_one(path));
        for (std::size_t i = there; i < path.size(); ++i) model_.add(path, i, given[i]);
        if (!path.empty()) model_.use(path, path.size());

        auto inserted = index_.insert(prompt, given, hold);
        REQUIRE(inserted.stored == fresh);
        REQUIRE(inserted.duplicates == duplicates);
        REQUIRE(inserted.evicted == evicted);
        if (hold) keep(path, path.size(), std::move(inserted.hold));
    }

    void keep(const Prefixes& path, std::size_t n, RadixIndex::Hold hold) {
        REQUIRE(static_cast<bool>(hold));
        model_.hold(path, n, 1);
        held_.push_back({path, n, std::move(hold)});
    }

    void match() {
        const Prepared prompt = any_request();
        const Prefixes path = prefixes(prompt);
        const std::uint64_t limit = below(2) == 0 ? RadixIndex::no_limit : below(prompt.token_ids.size() + 2);
        const bool whole = below(4) == 0;
        const bool hold = below(3) == 0;
        std::size_t n = model_.match(path, std::min<std::uint64_t>(limit / block_size_, path.size()));
        if (whole) n = whole_items(prompt, n);
        auto match = index_.match(prompt, limit, hold, whole);
        REQUIRE(Slots(match.slots().begin(), match.slots().end()) == model_.slots(path, n));
        if (n != 0) model_.use(path, n);
        REQUIRE(static_cast<bool>(match.hold) == hold);
        if (hold) keep(path, n, std::move(match.hold));
    }

    void hold_later() {
        const Prepared prompt = any_request();
        const Prefixes path = prefixes(prompt);
        const std::size_t n = model_.match(path, below(path.size() + 1));
        keep(path, n, index_.hold(prompt, model_.slots(path, n)));
    }

    void release() {
        if (held_.empty()) return;
        const std::size_t i = below(held_.size());
        Held held = std::move(held_[i]);
        held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(i));
        held.hold.release();
        model_.hold(held.path, held.n, -1);
        if (held.n != 0) model_.use(held.path, held.n);
    }

    void evict(std::size_t count) {
        Slots expected;
        for (std::size_t i = 0; i < count; ++i) {
            if (const auto slot = model_.evict_one({})) expected.push_back(*slot);
        }
        REQUIRE(index_.evict(count) == expected);
    }

    void remove() {
        const Prepared prompt = any_request();
        const Prefixes path = prefixes(prompt);
        const std::size_t from = below(path.size() + 2);
        Slots expected;
        if (from < path.size() && model_.match(path, from + 1) == from + 1) {
            if (model_.blocks.at(path[from]).holds != 0) {
                REQUIRE_THROWS_AS(index_.remove(prompt, from), HoldError);
                return;
            }
            std::vector<std::string> gone;
            for (const auto& [prefix, block] : model_.blocks) {
                if (prefix.starts_with(path[from] + "|") || prefix == path[from]) gone.push_back(prefix);
            }
            for (auto prefix = gone.rbegin(); prefix != gone.rend(); ++prefix)
                expected.push_back(model_.erase(*prefix));
        }
        Slots freed = index_.remove(prompt, from);
        std::ranges::sort(freed);
        std::ranges::sort(expected);
        REQUIRE(freed == expected);
    }

    void clear() {
        if (model_.held() != 0) {
            REQUIRE_THROWS_AS(index_.clear(), HoldError);
            return;
        }
        REQUIRE(index_.clear().size() == model_.blocks.size());
        model_.blocks.clear();
    }

    std::uint64_t block_size_;
    std::optional<std::uint64_t> capacity_;
    std::mt19937 random_;
    RadixIndex index_;
    Model model_;
    std::vector<Prepared> recent_;
    std::vector<Held> held_;
    std::int64_t next_slot_ = 0;
};

}  // namespace

// MMKEY_RADIX_STEPS plays that many operations instead.
TEST_CASE("ten thousand random operations do what a map of prefixes does") {
    const std::uint32_t seed = std::random_device{}();
    CAPTURE(seed);
    const char* wanted = std::getenv("MMKEY_RADIX_STEPS");
    const long steps = (wanted != nullptr ? std::atol(wanted) : 10'800) / 18;
    for (const std::uint64_t block_size : {1, 3, 16}) {
        for (const std::optional<std::uint64_t> capacity : {std::optional<std::uint64_t>{}, {30}, {12}}) {
            // Half of the runs with a short hash of one bit, so that most lookups meet a collision.
            for (const std::uint64_t mask : {~std::uint64_t{0}, std::uint64_t{1}}) {
                CAPTURE(block_size);
                Play play(block_size, capacity, mask, seed);
                for (long i = 1; i <= steps; ++i) {
                    play.step();
                    if (i % 400 == 0) play.finish();  // now and then it empties, and the model stays small
                }
                play.finish();
            }
        }
    }
}
