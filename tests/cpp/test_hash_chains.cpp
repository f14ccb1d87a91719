// Chains of digests against the one-shot digest of each link's message, which test_hash.cpp holds to the standards.
#include "hash_chains.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

using namespace mmkey;
using detail::Chains;

namespace {

struct Links {
    std::vector<std::uint8_t> prefixes;
    std::vector<std::uint32_t> sizes;
    Digest parent{};
    std::vector<Digest> out, expected;

    void add(std::size_t size, std::mt19937& random) {
        sizes.push_back(static_cast<std::uint32_t>(size));
        for (std::size_t i = 0; i < size; ++i) prefixes.push_back(static_cast<std::uint8_t>(random()));
    }

    void expect(Algorithm algorithm) {
        Digest before = parent;
        std::size_t at = 0;
        expected.clear();
        for (const auto size : sizes) {
            std::vector<std::uint8_t> message(prefixes.begin() + static_cast<std::ptrdiff_t>(at),
                                              prefixes.begin() + static_cast<std::ptrdiff_t>(at + size));
            message.insert(message.end(), before.begin(), before.end());
            before = digest(algorithm, message);
            expected.push_back(before);
            at += size;
        }
        out.assign(sizes.size(), Digest{});
    }

    /// Adds links until the chain is full or ends.
    void add_to(Chains& chains, std::size_t number) {
        for (; !finished() && chains.vacant(number) != 0; ++done) {
            std::copy_n(prefixes.data() + at, sizes[done], chains.room(number, sizes[done]));
            chains.add(number, sizes[done], 1);
            at += sizes[done];
        }
    }

    bool finished() const { return done == sizes.size(); }

    std::size_t done = 0, at = 0;
};

void check(Algorithm algorithm, std::vector<Links>& all) {
    Chains chains(algorithm);
    std::vector<Links*> active;
    for (auto next = all.begin(); next != all.end() || !active.empty();) {
        for (; active.size() < Chains::most && next != all.end(); ++next) {
            next->expect(algorithm);
            chains.begin(next->parent, next->out.data());
            active.push_back(&*next);
        }
        CHECK(chains.size() == active.size());
        for (std::size_t n = 0; n < active.size(); ++n) active[n]->add_to(chains, n);
        chains.step();
        for (std::size_t n = active.size(); n-- > 0;) {
            if (!active[n]->finished()) continue;
            chains.finish(n);
            active[n] = active.back();
            active.pop_back();
        }
    }
    for (const auto& links : all) CHECK(links.out == links.expected);
}

}  // namespace

TEST_CASE("a chain's digests are those of its messages, wherever the parent falls in its block") {
    std::mt19937 random(1);
    for (const auto algorithm : {Algorithm::sha256, Algorithm::blake3}) {
        for (std::size_t offset = 0; offset < 64; ++offset) {
            for (const std::size_t lead : {0, 64, 128, 320, 960, 1024, 2048}) {
                std::vector<Links> all(1);
                all[0].parent.fill(static_cast<std::uint8_t>(offset + 1));
                for (int i = 0; i < 37; ++i) all[0].add(lead + offset, random);
                CAPTURE(offset);
                CAPTURE(lead);
                check(algorithm, all);
            }
        }
    }
}

TEST_CASE("chains of any lengths and shapes run side by side") {
    const unsigned seed = std::random_device{}();
    CAPTURE(seed);
    std::mt19937 random(seed);
    for (const auto algorithm : {Algorithm::sha256, Algorithm::blake3}) {
        for (const std::size_t chains : {0, 1, 2, 3, 4, 5, 9}) {
            for (int round = 0; round < 12; ++round) {
                std::vector<Links> all(chains);
                for (auto& links : all) {
                    for (auto& byte : links.parent) byte = static_cast<std::uint8_t>(random());
                    const std::size_t count = random() % (round % 2 ? 300 : 20);
                    for (std::size_t i = 0; i < count; ++i) {
                        // mostly what a block chain gives: a parent early in its block; now and then anything
                        const std::size_t lead = 64 * (random() % 4);
                        links.add(random() % 16 ? lead + random() % 24 : random() % 1500, random);
                    }
                }
                check(algorithm, all);
            }
        }
    }
}
