// The library's own threads: started when first asked for, asleep in between.
#pragma once

#include <cstddef>

namespace mmkey::detail {

/// Calls task(0), ..., task(count - 1), each once, on at most `threads` threads of which the caller is one. Where no thread
/// can be started the caller does it all. A task neither throws nor calls this. Works in a child after fork, too.
void run_parallel(unsigned threads, std::size_t count, void (*task)(void* context, std::size_t index), void* context);

template <typename Task>
void parallel_for(unsigned threads, std::size_t count, const Task& task) {
    if (threads <= 1 || count <= 1) {
        for (std::size_t i = 0; i < count; ++i) task(i);
        return;
    }
    run_parallel(
        threads, count, [](void* context, std::size_t i) { (*static_cast<const Task*>(context))(i); },
        const_cast<void*>(static_cast<const void*>(&task)));
}

}  // namespace mmkey::detail
