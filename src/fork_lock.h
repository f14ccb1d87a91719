// A lock that a forked child does not wait for: the thread that held it at the fork is not there to give it back.
#pragma once

#include "mmkey/error.h"

#include <pthread.h>

#include <atomic>
#include <cstdint>

namespace mmkey::python {

/// The forks on the way to this process, from 1: every ancestor has another number.
inline constinit std::atomic<int> fork_generation{1};

/// To be called once, when the module is loaded.
inline void count_forks() noexcept {
    pthread_atfork(nullptr, nullptr, [] { fork_generation.fetch_add(1, std::memory_order_relaxed); });
}

/// Mutual exclusion within a process. What it guards may be half changed where a thread of the parent held it at the fork:
/// in the child such a lock is never to be had again.
class ForkLock {
  public:
    ForkLock() noexcept = default;
    ForkLock(const ForkLock&) = delete;
    ForkLock& operator=(const ForkLock&) = delete;

    static constexpr char problem[] = "was in use by another thread when this process was forked; make a new one";

    enum class Outcome { taken, busy, lost };

    Outcome try_lock() noexcept {
        const int mine = fork_generation.load(std::memory_order_relaxed);
        int holder = 0;
        if (holder_.compare_exchange_strong(holder, mine, std::memory_order_acquire)) return Outcome::taken;
        return holder == mine ? Outcome::busy : Outcome::lost;
    }

    /// Waits; false where it is lost. Not to be called with the GIL held if the holder may wait for that.
    [[nodiscard]] bool lock() noexcept {
        for (;;) {
            const Outcome outcome = try_lock();
            if (outcome != Outcome::busy) return outcome == Outcome::taken;
            holder_.wait(fork_generation.load(std::memory_order_relaxed), std::memory_order_relaxed);
        }
    }

    void unlock() noexcept {
        holder_.store(0, std::memory_order_release);
        holder_.notify_one();
    }

  private:
    std::atomic<int> holder_{0};  // the generation of the process that holds it, or 0
};

/// Holds a lock for as long as it lives; InvalidRequest under `field` where the lock is lost.
class ForkGuard {
  public:
    ForkGuard(ForkLock& lock, const char* field) : lock_(lock) {
        if (!lock.lock()) throw InvalidRequest(field, ForkLock::problem);
    }
    ForkGuard(const ForkGuard&) = delete;
    ForkGuard& operator=(const ForkGuard&) = delete;
    ~ForkGuard() { lock_.unlock(); }

  private:
    ForkLock& lock_;
};

/// Counts the calls that work on a thing without the GIL. What has locks of its own may be locked and half changed where one
/// was at work at a fork: in the child it is lost. A fork comes from a thread that has the GIL, so no other call matters.
class ForkCount {
  public:
    /// InvalidRequest under `field` where it is lost.
    void require_kept(const char* field) const {
        if (lost(state_.load())) throw InvalidRequest(field, ForkLock::problem);
    }

    /// One call, for as long as it lives.
    class Call {
      public:
        explicit Call(ForkCount& count) noexcept : state_(count.state_) {
            std::uint64_t now = state_.load();
            while (!state_.compare_exchange_weak(now, (generation() << 32) | ((now + 1) & 0xffffffff))) {
            }
        }
        Call(const Call&) = delete;
        Call& operator=(const Call&) = delete;
        ~Call() { state_.fetch_sub(1); }

      private:
        std::atomic<std::uint64_t>& state_;
    };

  private:
    static std::uint64_t generation() noexcept { return static_cast<std::uint64_t>(fork_generation.load()); }
    static bool lost(std::uint64_t state) noexcept { return (state & 0xffffffff) != 0 && state >> 32 != generation(); }

    std::atomic<std::uint64_t> state_{0};  // the generation of the last call, above; calls at work, below
};

}  // namespace mmkey::python
