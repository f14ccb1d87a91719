// Matches a second of one thread and of two on one index: 8,192 tokens, all hit. Prints the median ratio of some rounds.
#include "mmkey/radix_index.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <random>
#include <thread>
#include <vector>

using namespace mmkey;

namespace {

constexpr std::size_t tokens = 8192;
constexpr std::size_t block_size = 16;
constexpr int matches = 100'000;
constexpr int rounds = 9;

Prepared prompt(std::uint32_t seed) {
    std::mt19937 random(seed);
    std::shared_ptr<std::uint32_t[]> ids(new std::uint32_t[tokens]);
    for (std::size_t i = 0; i < tokens; ++i) ids[i] = random() % 150'000;
    Prepared prepared;
    prepared.seed = {Strategy::A, Algorithm::sha256, block_size, Digest{}};
    prepared.token_ids = TokenIds(ids, tokens);
    return prepared;
}

/// Matches a second, all threads together; each has a copy of the prompt of its own.
double rate(RadixIndex& index, int thread_count) {
    std::vector<std::thread> threads;
    const auto begun = std::chrono::steady_clock::now();
    for (int i = 0; i < thread_count; ++i) {
        threads.emplace_back([&index] {
            const Prepared mine = prompt(1);
            for (int k = 0; k < matches; ++k) {
                if (index.match(mine).blocks != tokens / block_size) std::abort();
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    return thread_count * matches / std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

}  // namespace

int main() {
    RadixIndex index({block_size, {}, nullptr, ~std::uint64_t{0}});
    std::vector<std::int64_t> slots(tokens / block_size);
    for (std::size_t i = 0; i < slots.size(); ++i) slots[i] = static_cast<std::int64_t>(i);
    index.insert(prompt(1), slots);
    std::vector<double> ones, ratios;
    for (int round = 0; round < rounds; ++round) {
        const double one = rate(index, 1);
        ones.push_back(one);
        ratios.push_back(rate(index, 2) / one);
    }
    std::ranges::sort(ones);
    std::ranges::sort(ratios);
    std::printf("%.0f %.3f\n", ones[rounds / 2], ratios[rounds / 2]);
}
