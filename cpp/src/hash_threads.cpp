#include "hash_threads.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace mmkey::detail {

namespace {

/// One call of run_parallel. It lives on the caller's stack: the caller leaves last.
struct Job {
    void (*task)(void*, std::size_t);
    void* context;
    std::size_t count;
    unsigned seats;  // helpers that may still join; guarded by the pool's mutex, as is `working`
    unsigned working = 0;
    std::atomic<std::size_t> next{0};

    void work() {
        for (std::size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < count;) task(context, i);
    }
};

/// Threads that wait for jobs. Never destroyed: they may outlive main, and a forked child has a pool of its own.
class Pool {
  public:
    explicit Pool(pid_t process) : owner(process) {}

    const pid_t owner;

    void run(Job& job) {
        const unsigned asked = job.seats;
        {
            const std::lock_guard lock(mutex_);
            wanted_ += asked;
            try {
                while (threads_ < std::min(wanted_, most_threads)) {
                    std::thread([this] { serve(); }).detach();
                    ++threads_;
                }
                jobs_.push_back(&job);
            } catch (const std::exception&) {  // no thread, no memory: with fewer helpers, then
            }
        }
        wake_.notify_all();
        job.work();
        std::unique_lock lock(mutex_);
        wanted_ -= asked;
        std::erase(jobs_, &job);
        idle_.wait(lock, [&] { return job.working == 0; });
    }

  private:
    static constexpr unsigned most_threads = 256;

    void serve() {
        std::unique_lock lock(mutex_);
        for (;;) {
            const auto open = std::find_if(jobs_.begin(), jobs_.end(), [](const Job* job) { return job->seats != 0; });
            if (open == jobs_.end()) {
                wake_.wait(lock);
                continue;
            }
            Job& job = **open;
            --job.seats, ++job.working;
            lock.unlock();
            job.work();
            lock.lock();
            if (--job.working == 0) idle_.notify_all();
        }
    }

    std::mutex mutex_;
    std::condition_variable wake_, idle_;
    std::vector<Job*> jobs_;
    unsigned threads_ = 0;
    unsigned wanted_ = 0;
};

/// The pool of this process. After a fork the parent's is left alone: its threads are not here, its mutex may be locked.
Pool& pool() {
    static std::atomic<Pool*> current{nullptr};
    Pool* mine = current.load(std::memory_order_acquire);
    const pid_t self = getpid();
    while (!mine || mine->owner != self) {
        Pool* fresh = new Pool(self);
        if (current.compare_exchange_strong(mine, fresh, std::memory_order_acq_rel)) return *fresh;
        delete fresh;
    }
    return *mine;
}

}  // namespace

void run_parallel(unsigned threads, std::size_t count, void (*task)(void*, std::size_t), void* context) {
    Job job{task, context, count, static_cast<unsigned>(std::min<std::size_t>(threads, count) - 1)};
    pool().run(job);
}

}  // namespace mmkey::detail
