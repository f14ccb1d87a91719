// A lock that a forked child does not wait for: the thread that held it at the fork is not there to give it back.
#pragma once

#include "mmkey/error.h"

#include <pthread.h>

#include <atomic>

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

}  // namespace mmkey::python
