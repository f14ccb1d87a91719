// The prefix index under threads: run it under ThreadSanitizer.
#include "mmkey/radix_index.h"

#include "radix_requests.h"

#include <doctest/doctest.h>

#include <atomic>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

using namespace mmkey;
using namespace mmkey::test;

namespace {

/// Hands out block numbers as an engine's pool does, and notices one that is freed twice.
class Pool {
  public:
    explicit Pool(std::int64_t size) {
        for (std::int64_t i = 0; i < size; ++i) free_.insert(i);
    }
    std::int64_t take() {
        const std::lock_guard lock(mutex_);
        if (free_.empty()) return -1;
        const std::int64_t slot = *free_.begin();
        free_.erase(free_.begin());
        return slot;
    }
    void give(std::int64_t slot) {
        const std::lock_guard lock(mutex_);
        if (!free_.insert(slot).second) ++given_twice_;
    }
    std::size_t size() const { return free_.size(); }
    int given_twice() const { return given_twice_; }

  private:
    mutable std::mutex mutex_;
    std::set<std::int64_t> free_;
    int given_twice_ = 0;
};

}  // namespace

TEST_CASE("threads that match, hold, insert, evict and remove at once lose no block and share no slot") {
    constexpr std::size_t pool_size = 600;
    RadixIndex index({4, 400, nullptr, ~std::uint64_t{0}});
    Pool pool(pool_size);
    std::atomic<int> wrong{0};
    const std::uint32_t seed = std::random_device{}();
    CAPTURE(seed);

    const auto work = [&](std::uint32_t thread) {
        std::mt19937 random(seed + thread);
        for (int i = 0; i < 3000; ++i) {
            const Prepared prompt = random_request(random, 4);
            auto match = index.match(prompt, RadixIndex::no_limit, true);
            std::vector<std::int64_t> slots(match.slots().begin(), match.slots().end());
            std::vector<std::int64_t> taken;
            while (slots.size() < prompt.full_blocks()) {
                const std::int64_t slot = pool.take();
                if (slot < 0) break;
                taken.push_back(slot);
                slots.push_back(slot);
            }
            if (slots.size() == prompt.full_blocks()) {
                try {
                    auto inserted = index.insert(prompt, slots, true);
                    for (const std::int64_t slot : inserted.duplicates) pool.give(slot);
                    for (const std::int64_t slot : inserted.evicted) pool.give(slot);
                    // While it is held it is found whole, and what was held before is where it was.
                    const auto again = index.match(prompt);
                    if (again.blocks != prompt.full_blocks()) ++wrong;
                    for (std::size_t k = 0; k < match.blocks; ++k) wrong += again.slots()[k] != match.slots()[k];
                    inserted.hold.release();
                } catch (const CapacityError&) {
                    for (const std::int64_t slot : taken) pool.give(slot);
                }
            } else {
                for (const std::int64_t slot : taken) pool.give(slot);
            }
            match.hold.release();
            if (i % 7 == 0) {
                for (const std::int64_t slot : index.evict(random() % 8)) pool.give(slot);
            }
            if (i % 50 == 0) {
                try {
                    for (const std::int64_t slot : index.remove(prompt, random() % 3)) pool.give(slot);
                } catch (const HoldError&) {
                    // Another thread holds it.
                }
            }
            if (i % 200 == 0) index.check();
            const auto stats = index.stats();
            wrong += stats.blocks != stats.held + stats.evictable;
        }
    };
    std::vector<std::thread> threads;
    for (std::uint32_t thread = 0; thread < 4; ++thread) threads.emplace_back(work, thread);
    for (std::thread& thread : threads) thread.join();

    CHECK(wrong == 0);
    CHECK(pool.given_twice() == 0);
    CHECK(index.stats().held == 0);
    CHECK(index.stats().holds == 0);
    CHECK(pool.size() + index.size() == pool_size);
    index.check();
    for (const std::int64_t slot : index.evict(pool_size)) pool.give(slot);
    CHECK(pool.size() == pool_size);
    CHECK(pool.given_twice() == 0);
}

TEST_CASE("a stream of matches does not keep an insert waiting") {
    RadixIndex index({4, {}, nullptr, ~std::uint64_t{0}});
    const Prepared prompt = request(count_up(0, 4000), 4);
    index.insert(prompt, slots_from(0, 1000));
    std::atomic<bool> done{false};
    std::vector<std::thread> readers;
    for (int i = 0; i < 3; ++i) {
        readers.emplace_back([&] {
            while (!done) index.match(prompt);
        });
    }
    for (std::uint32_t i = 1; i <= 200; ++i) index.insert(request(count_up(10000 * i, 4), 4), slots_from(1000 + i, 1));
    done = true;
    for (std::thread& reader : readers) reader.join();
    CHECK(index.size() == 1200);
    index.check();
}
