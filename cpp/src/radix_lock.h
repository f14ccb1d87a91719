// The index's lock: many readers or one writer.
//
// Readers count themselves in one of several shards, so that readers on different cores share no cache line beyond the
// flag that they only read. A waiting writer keeps new readers out, so a stream of matches never starves an insert,
// which the usual std::shared_mutex of Linux allows.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace mmkey::radix {

class SharedLock {
  public:
    void lock_shared() noexcept {
        std::atomic<std::uint32_t>& readers = shard();
        // Reader: count, then look at the flag. Writer: set the flag, then look at the counts. Both sequentially
        // consistent, so at least one of the two sees the other.
        while (true) {
            readers.fetch_add(1);
            if (writing_.load() == 0) return;
            leave(readers);
            writing_.wait(1);
        }
    }

    void unlock_shared() noexcept { leave(shard()); }

    void lock() {
        writers_.lock();
        writing_.store(1);
        for (Shard& shard : shards_) {
            while (const std::uint32_t readers = shard.readers.load()) shard.readers.wait(readers);
        }
    }

    void unlock() noexcept {
        writing_.store(0);
        writing_.notify_all();
        writers_.unlock();
    }

  private:
    static constexpr std::size_t shard_count = 16;
    struct alignas(64) Shard {
        std::atomic<std::uint32_t> readers{0};
    };

    std::atomic<std::uint32_t>& shard() noexcept {
        static std::atomic<std::size_t> threads{0};
        thread_local const std::size_t mine = threads.fetch_add(1, std::memory_order_relaxed) % shard_count;
        return shards_[mine].readers;
    }

    void leave(std::atomic<std::uint32_t>& readers) noexcept {
        readers.fetch_sub(1);
        if (writing_.load() != 0) readers.notify_one();
    }

    std::array<Shard, shard_count> shards_;
    alignas(64) std::atomic<std::uint32_t> writing_{0};
    std::mutex writers_;
};

}  // namespace mmkey::radix
