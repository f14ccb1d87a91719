// The prefix index, case by case.
#include "mmkey/radix_index.h"

#include "radix_requests.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace mmkey;
using namespace mmkey::test;

namespace {

using Slots = std::vector<std::int64_t>;

Slots slots_of(const RadixIndex::Match& match) { return {match.slots().begin(), match.slots().end()}; }

RadixIndex::Options options(std::uint64_t block_size, std::optional<std::uint64_t> capacity = {}) {
    RadixIndex::Options options;
    options.block_size = block_size;
    options.capacity = capacity;
    return options;
}

/// The field of the InvalidRequest that `call` throws.
template <class Call>
std::string invalid_field(Call&& call) {
    try {
        call();
    } catch (const InvalidRequest& error) {
        return error.field();
    }
    return "nothing was thrown";
}

}  // namespace

TEST_CASE("what was inserted is matched, as far as it is the same") {
    RadixIndex index(options(4));
    const Prepared prompt = request(count_up(0, 18), 4);
    const auto inserted = index.insert(prompt, slots_from(10, 4));
    CHECK(inserted.stored == 4);
    CHECK(inserted.duplicates.empty());
    CHECK(slots_of(index.match(prompt)) == slots_from(10, 4));
    std::vector<std::uint32_t> other = count_up(0, 18);
    other[9] = 77;
    CHECK(slots_of(index.match(request(other, 4))) == slots_from(10, 2));
    CHECK(index.match(request(count_up(1, 18), 4)).blocks == 0);
    CHECK(index.size() == 4);
    index.check();
}

TEST_CASE("a prompt one token short of a block matches nothing and leaves the tree unchanged") {
    RadixIndex index(options(16));
    const Prepared prompt = request(count_up(0, 15), 16);
    CHECK(index.insert(prompt, {}).stored == 0);
    CHECK(index.match(prompt).blocks == 0);
    const auto stats = index.stats();
    CHECK(stats.blocks == 0);
    CHECK(stats.nodes == 0);
    CHECK(stats.roots == 0);
    index.check();
}

TEST_CASE("blocks after an evicted one are not found, since none is left stored") {
    RadixIndex index(options(2));
    const Prepared prompt = request({1, 1, 2, 2, 3, 3}, 2);
    index.insert(prompt, slots_from(0, 3));
    CHECK(index.remove(prompt, 0) == Slots{2, 1, 0});
    CHECK(index.match(prompt).blocks == 0);
    CHECK(index.size() == 0);
    index.insert(prompt, slots_from(0, 3));
    CHECK(index.evict(2) == Slots{2, 1});
    CHECK(slots_of(index.match(prompt)) == Slots{0});
    index.check();
}

TEST_CASE("the limit is rounded down to blocks, and leaves a token of the same prompt to compute") {
    RadixIndex index(options(4));
    const Prepared prompt = request(count_up(0, 16), 4);
    index.insert(prompt, slots_from(0, 4));
    CHECK(index.match(prompt, 15).blocks == 3);
    CHECK(index.match(prompt, 16).blocks == 4);
    CHECK(index.match(prompt, 3).blocks == 0);
    CHECK(index.match(prompt, 0).blocks == 0);
}

TEST_CASE("requests of two roots share no block") {
    RadixIndex index(options(2));
    index.insert(request({1, 2, 3, 4}, 2, {}, "salt s1"), slots_from(0, 2));
    CHECK(index.match(request({1, 2, 3, 4}, 2, {}, "salt s2")).blocks == 0);
    CHECK(index.insert(request({1, 2, 3, 4}, 2, {}, "salt s2"), slots_from(2, 2)).stored == 2);
    CHECK(index.stats().roots == 2);
    index.check();
}

TEST_CASE("roots that share their low 64 bits, or all bits but one, are told apart") {
    RadixIndex index(options(2));
    Prepared one = request({1, 2}, 2);
    index.insert(one, slots_from(5, 1));
    for (std::size_t byte = 0; byte < 32; ++byte) {
        Prepared other = one;
        other.seed.root[byte] ^= 1;
        CHECK(index.match(other).blocks == 0);
    }
    CHECK(index.match(one).blocks == 1);
}

TEST_CASE("the same ids with another picture, another part of it or none share only the blocks before it") {
    RadixIndex index(options(4));
    const std::vector<std::uint32_t> ids = {1, 2, 3, 4, 5, 9, 9, 9, 9, 9, 9, 9, 9, 6, 7, 8};
    index.insert(request(ids, 4, {{0, {{5, 8}}}}), slots_from(0, 4));
    CHECK(index.match(request(ids, 4, {{0, {{5, 8}}}})).blocks == 4);
    CHECK(index.match(request(ids, 4, {{1, {{5, 8}}}})).blocks == 1);
    CHECK(index.match(request(ids, 4)).blocks == 1);
    CHECK(index.match(request(ids, 4, {{0, {{5, 7}}}})).blocks == 1);
    CHECK(index.match(request(ids, 4, {{0, {{4, 9}}}})).blocks == 1);
    CHECK(index.match(request(ids, 4, {{0, {{5, 4}}}, {0, {{9, 4}}}})).blocks == 1);
    index.check();
}

TEST_CASE("a block full of placeholders of one picture is told from the next by what was filled before") {
    RadixIndex index(options(2));
    const std::vector<std::uint32_t> ids(8, 9);
    index.insert(request(ids, 2, {{0, {{0, 8}}}}), slots_from(0, 4));
    // The same picture in two ranges, the second where the first request has positions 4 to 7 of it as well.
    CHECK(index.match(request(ids, 2, {{0, {{0, 2}, {4, 4}}}})).blocks == 0);
    // Two pictures of the same identity, each begun anew.
    CHECK(index.match(request(ids, 2, {{0, {{0, 4}}}, {0, {{4, 4}}}})).blocks == 0);
}

TEST_CASE("67 pictures under one prompt are 67 prompts") {
    RadixIndex index(options(16));
    const std::vector<std::uint32_t> ids(64, 7);
    for (std::uint32_t picture = 0; picture < 67; ++picture) {
        const Prepared prompt = request(ids, 16, {{picture, {{20, 40}}}});
        CHECK(index.match(prompt).blocks == (picture == 0 ? 0 : 1));
        Slots slots = slots_from(10 * picture, 4);
        if (picture != 0) slots[0] = 0;
        CHECK(index.insert(prompt, slots).stored == (picture == 0 ? 4 : 3));
    }
    CHECK(index.size() == 1 + 67 * 3);
    CHECK(index.stats().collisions == 0);
    index.check();
}

TEST_CASE("two equal pictures side by side stay found when the tree was cut and joined between them") {
    // The second's second range goes on where the first's first ends, at a block edge: one stretch of a node or two.
    RadixIndex index(options(4));
    const std::vector<std::uint32_t> ids(24, 9);
    const std::vector<Placed> items = {{0, {{0, 4}, {8, 4}}}, {0, {{4, 4}, {12, 4}}}};
    const Prepared prompt = request(ids, 4, items);
    index.insert(prompt, slots_from(0, 6));
    for (std::uint64_t blocks = 1; blocks < 6; ++blocks) {
        std::vector<std::uint32_t> other = ids;
        other[blocks * 4] = 1;
        Slots slots = slots_from(0, 6);
        for (std::size_t i = blocks; i < 6; ++i) slots[i] += 100;
        const Prepared branch = request(other, 4, items);
        index.insert(branch, slots);
        index.check();
        CHECK(index.match(prompt).blocks == 6);
        index.remove(branch, blocks);
        index.check();
        CHECK(index.match(prompt).blocks == 6);
        CHECK(index.stats().nodes == 1);
    }
}

TEST_CASE("whole_items ends a match before the block in which an unfinished item begins") {
    RadixIndex index(options(4));
    const std::vector<std::uint32_t> ids(32, 9);
    // Positions 5 to 9 and 14 to 17 of one item, 19 to 30 of another.
    const std::vector<Placed> items = {{0, {{5, 5}, {14, 4}}}, {1, {{19, 12}}}};
    const Prepared prompt = request(ids, 4, items);
    index.insert(prompt, slots_from(0, 8));
    const std::size_t whole[] = {0, 1, 1, 1, 1, 4, 4, 4, 8};
    for (std::uint64_t blocks = 0; blocks <= 8; ++blocks) {
        CAPTURE(blocks);
        // Position 16 and 17, in block 4, are the first item's last; block 4 also begins the second.
        const std::size_t expected = blocks == 5 ? 1 : blocks == 6 || blocks == 7 ? 1 : whole[blocks];
        CHECK(index.match(prompt, blocks * 4, false, true).blocks == expected);
    }
    CHECK(slots_of(index.match(prompt, 12, false, true)) == Slots{0});
}

TEST_CASE("blocks that are stored already are reported, and stay in their slots") {
    RadixIndex index(options(2));
    const Prepared prompt = request({1, 2, 3, 4, 5, 6}, 2);
    index.insert(prompt, slots_from(0, 3));
    const Prepared longer = request({1, 2, 3, 4, 5, 6, 7, 8}, 2);
    const auto inserted = index.insert(longer, Slots{0, 11, 12, 13});
    CHECK(inserted.stored == 1);
    CHECK(inserted.duplicates == Slots{11, 12});
    CHECK(slots_of(index.match(longer)) == Slots{0, 1, 2, 13});
    CHECK(index.stats().nodes == 1);
    index.check();
}

TEST_CASE("least recently used goes first, block by block from the leaves") {
    RadixIndex index(options(1));
    index.insert(request({1, 2, 3}, 1), Slots{1, 2, 3});
    index.insert(request({1, 4, 5}, 1), Slots{1, 4, 5});
    index.match(request({1, 2}, 1));  // 1 and 2, not 3
    CHECK(index.evict(1) == Slots{3});
    CHECK(index.evict(1) == Slots{5});
    CHECK(index.evict(9) == Slots{4, 2, 1});
    CHECK(index.evict(9).empty());
    CHECK(index.stats().roots == 0);
    index.check();
}

TEST_CASE("a prefix is as recent as the latest prompt that went through it, also once that is removed") {
    RadixIndex index(options(1));
    index.insert(request({1, 2}, 1), Slots{1, 2});
    index.insert(request({7, 8}, 1), Slots{7, 8});
    index.insert(request({1, 3}, 1), Slots{1, 3});
    index.remove(request({1, 3}, 1), 1);
    CHECK(index.evict(4) == Slots{2, 8, 7, 1});
}

TEST_CASE("a use that a removed prompt leaves to its prefix outlives the prefix's older ones") {
    RadixIndex index(options(1));
    index.insert(request({1, 2}, 1), Slots{1, 2});
    index.insert(request({1, 3}, 1), Slots{1, 3});
    index.match(request({1}, 1));
    index.insert(request({7}, 1), Slots{7});
    index.insert(request({1, 4}, 1), Slots{1, 4});
    index.remove(request({1, 4}, 1), 1);
    index.check();
    CHECK(index.evict(4) == Slots{2, 3, 7, 1});
}

TEST_CASE("what is held is not evicted, and its release is a use") {
    RadixIndex index(options(2));
    const Prepared a = request({1, 1, 2, 2, 3, 3}, 2);
    const Prepared b = request({1, 1, 4, 4}, 2);
    index.insert(a, Slots{1, 2, 3});
    index.insert(b, Slots{1, 4});
    auto match = index.match(a, 4, true);
    CHECK(slots_of(match) == Slots{1, 2});
    CHECK(index.stats().held == 2);
    CHECK(index.stats().evictable == 2);
    CHECK(index.evict(9) == Slots{3, 4});
    index.check();
    match.hold.release();
    CHECK(index.stats().held == 0);
    CHECK(index.evict(9) == Slots{2, 1});
    index.check();
}

TEST_CASE("a hold is released once") {
    RadixIndex index(options(2));
    const Prepared prompt = request({1, 1, 2, 2}, 2);
    index.insert(prompt, Slots{1, 2});
    auto one = index.match(prompt, RadixIndex::no_limit, true);
    auto two = index.match(prompt, RadixIndex::no_limit, true);
    CHECK(index.stats().holds == 2);
    one.hold.release();
    CHECK_THROWS_AS(one.hold.release(), HoldError);
    CHECK(index.stats().held == 2);
    two.hold.release();
    CHECK_THROWS_AS(index.match(prompt).hold.release(), HoldError);
    auto none = index.match(request({5, 5}, 2), RadixIndex::no_limit, true);
    CHECK(none.blocks == 0);
    none.hold.release();
    CHECK_THROWS_AS(none.hold.release(), HoldError);
    index.check();
}

TEST_CASE("a match that is stale cannot be held") {
    RadixIndex index(options(2));
    const Prepared prompt = request({1, 1, 2, 2}, 2);
    index.insert(prompt, Slots{1, 2});
    const auto match = index.match(prompt);
    auto hold = index.hold(prompt, match.slots());
    CHECK(index.evict(9).empty());
    hold.release();
    CHECK(index.evict(1) == Slots{2});
    CHECK_THROWS_AS(index.hold(prompt, match.slots()), HoldError);
    index.insert(prompt, Slots{1, 7});
    CHECK_THROWS_AS(index.hold(prompt, match.slots()), HoldError);
    CHECK(index.stats().held == 0);
    index.check();
}

TEST_CASE("at capacity an insert evicts what it needs, nothing of itself, or changes nothing") {
    RadixIndex index(options(1, 4));
    index.insert(request({1, 2, 3}, 1), Slots{1, 2, 3});
    const auto inserted = index.insert(request({1, 4, 5}, 1), Slots{1, 4, 5});
    CHECK(inserted.evicted == Slots{3});
    CHECK(index.size() == 4);
    index.check();

    auto held = index.match(request({1, 4, 5}, 1), RadixIndex::no_limit, true);
    const auto before = index.stats();
    CHECK_THROWS_AS(index.insert(request({6, 7}, 1), Slots{6, 7}), CapacityError);
    CHECK_THROWS_AS(index.insert(request({1, 2, 8, 9}, 1), Slots{1, 2, 8, 9}), CapacityError);
    CHECK(index.stats().blocks == before.blocks);
    CHECK(index.stats().bytes == before.bytes);
    index.check();
    CHECK(index.insert(request({6}, 1), Slots{6}).evicted == Slots{2});
    held.hold.release();
    CHECK_THROWS_AS(index.insert(request({1, 2, 3, 4, 5}, 1), slots_from(20, 5)), CapacityError);
    index.check();
}

TEST_CASE("removing or clearing what is held is an error and changes nothing") {
    RadixIndex index(options(1));
    const Prepared prompt = request({1, 2, 3}, 1);
    index.insert(prompt, Slots{1, 2, 3});
    auto match = index.match(prompt, 2, true);
    CHECK_THROWS_AS(index.remove(prompt, 1), HoldError);
    CHECK_THROWS_AS(index.remove(prompt), HoldError);
    CHECK_THROWS_AS(index.clear(), HoldError);
    CHECK(index.size() == 3);
    CHECK(index.remove(prompt, 2) == Slots{3});
    CHECK(index.remove(prompt, 2).empty());
    CHECK(index.remove(prompt, 99).empty());
    index.check();
    match.hold.release();
    CHECK(index.clear().size() == 2);
    CHECK(index.size() == 0);
    index.check();
}

TEST_CASE("bad slots are refused by name, and change nothing") {
    RadixIndex index(options(1));
    index.insert(request({1, 2}, 1), Slots{1, 2});
    const Prepared prompt = request({1, 3, 4}, 1);
    CHECK(invalid_field([&] { index.insert(prompt, Slots{1, 3}); }) == "slots");
    CHECK(invalid_field([&] { index.insert(prompt, Slots{1, 3, -1}); }) == "slots[2]");
    CHECK(invalid_field([&] { index.insert(prompt, Slots{1, 3, 3}); }) == "slots[2]");
    CHECK(invalid_field([&] { index.insert(prompt, Slots{1, 3, 2}); }) == "slots[2]");
    CHECK(invalid_field([&] { index.insert(prompt, Slots{9, 2, 3}); }) == "slots[1]");
    CHECK(index.size() == 2);
    index.check();
    CHECK(index.insert(prompt, Slots{1, 3, (std::int64_t{1} << 62)}).stored == 2);
    index.check();
}

TEST_CASE("a request that was prepared for other blocks, or has none, is refused") {
    RadixIndex index(options(16));
    CHECK(invalid_field([&] { index.match(request(count_up(0, 32), 8)); }) == "block_size");
    CHECK(invalid_field([&] { index.insert(request({}, 8), {}); }) == "block_size");
    Prepared unknown_layout = request(count_up(0, 32), 16);
    unknown_layout.has_blocks = false;
    CHECK(invalid_field([&] { index.match(unknown_layout); }) == "layout");
    CHECK(invalid_field([] { RadixIndex refused(options(0)); }) == "block_size");
    CHECK(invalid_field([] { RadixIndex refused(options(4, 0)); }) == "capacity");
}

TEST_CASE("a forced collision of the short hash is a miss and a count, never a hit") {
    RadixIndex::Options forced = options(4);
    forced.hash_mask = 0;
    RadixIndex index(forced);
    for (std::uint32_t i = 0; i < 40; ++i) {
        CHECK(index.match(request(count_up(100 * i, 8), 4)).blocks == 0);
        index.insert(request(count_up(100 * i, 8), 4), slots_from(2 * i, 2));
    }
    CHECK(index.stats().collisions >= 39);
    for (std::uint32_t i = 0; i < 40; ++i) {
        CHECK(slots_of(index.match(request(count_up(100 * i, 8), 4))) == slots_from(2 * i, 2));
    }
    CHECK(index.match(request(count_up(50, 8), 4)).blocks == 0);
    index.check();
    CHECK(index.evict(80).size() == 80);
    index.check();
}

TEST_CASE("a conversation that grows block by block, each step held, stays one run") {
    RadixIndex index(options(16));
    RadixIndex::Hold hold;
    for (std::size_t blocks = 1; blocks <= 500; ++blocks) {
        auto inserted = index.insert(request(count_up(0, 16 * blocks), 16), slots_from(0, blocks), true);
        CHECK(inserted.stored == 1);
        hold = std::move(inserted.hold);
        CHECK(index.stats().holds == 1);
        CHECK(index.stats().nodes == 1);
    }
    index.check();
    const double tokens = 16.0 * 500;
    CHECK(index.stats().bytes / tokens < 4.5 * 1.125 + 0.5);
}

TEST_CASE("memory comes back with the blocks, whatever order they go in") {
    RadixIndex index(options(16));
    const std::size_t empty = index.stats().bytes;
    std::mt19937 random(1);
    for (std::uint32_t i = 0; i < 2000; ++i) {
        std::vector<std::uint32_t> ids = count_up(random() % 5 * 1000, 320);
        ids.resize(16 * (1 + random() % 20));
        for (std::uint32_t id : count_up(i * 100000, 160)) ids.push_back(id);
        const Prepared prompt = request(ids, 16);
        const auto match = index.match(prompt);
        Slots slots = slots_from(100 * i, prompt.full_blocks());
        std::copy(match.slots().begin(), match.slots().end(), slots.begin());
        index.insert(prompt, slots);
    }
    index.check();
    while (index.size() != 0) index.evict(1 + random() % 50);
    index.check();
    CHECK(index.stats().bytes <= empty + 4096);
}
