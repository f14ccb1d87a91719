// Batches against digests that were streamed one by one, which test_hash.cpp holds to the standards.
#include "mmkey/hash.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

using namespace mmkey;

namespace {

constexpr std::size_t edges[] = {0,    1,    55,   56,   63,   64,   65,   119,  120,  127,   128,   129,
                                 1023, 1024, 1025, 2047, 2048, 2049, 4096, 4097, 8192, 16384, 16385, 40000};

const std::vector<std::uint8_t>& bytes() {
    static const std::vector<std::uint8_t> data = [] {
        std::mt19937 random(7);
        std::vector<std::uint8_t> fresh(1 << 20);
        for (auto& byte : fresh) byte = static_cast<std::uint8_t>(random());
        return fresh;
    }();
    return data;
}

/// A message of `size` bytes of which `head` come first; the parts lie apart, unaligned.
Message message(std::size_t size, std::size_t head, std::mt19937& random) {
    const Bytes all(bytes());
    head = std::min(head, size);
    return {all.subspan(random() % 4096, head), all.subspan(500'000 + random() % 4096, size - head)};
}

void check(std::span<const Message> messages) {
    for (const auto algorithm : {Algorithm::sha256, Algorithm::blake3}) {
        std::vector<Digest> expected;
        for (const auto& m : messages) {
            Hasher hasher(algorithm);
            hasher.update(m.head);
            hasher.update(m.body);
            expected.push_back(hasher.digest());
        }
        for (const unsigned threads : {1u, 2u, 5u}) {
            std::vector<Digest> out(messages.size());
            digest_many(algorithm, messages, out, threads);
            CHECK(out == expected);
        }
    }
}

}  // namespace

TEST_CASE("a batch of equal sizes has the digests of its messages, at every number of lanes and every edge") {
    std::mt19937 random(3);
    for (const std::size_t size : edges) {
        for (const std::size_t count : {0, 1, 2, 3, 4, 5, 7, 8, 9, 11, 15, 16, 17, 31, 33}) {
            for (const std::size_t head : {std::size_t{0}, random() % 130}) {
                CAPTURE(size);
                CAPTURE(count);
                CAPTURE(head);
                std::vector<Message> messages;
                for (std::size_t i = 0; i < count; ++i) messages.push_back(message(size, head, random));
                check(messages);
            }
        }
    }
}

TEST_CASE("a head of any length goes before a body of any length") {
    std::mt19937 random(4);
    for (const std::size_t head : edges)
        for (const std::size_t body : edges) check(std::vector{message(head + body, head, random)});
}

TEST_CASE("a ragged batch has the digests of its messages") {
    const unsigned seed = std::random_device{}();
    CAPTURE(seed);
    std::mt19937 random(seed);
    for (int round = 0; round < 60; ++round) {
        std::vector<Message> messages(random() % 70);
        const int scale = 6 + round % 12;
        for (auto& m : messages) {
            const std::size_t size = random() % 3
                                         ? random() % (std::size_t{1} << random() % static_cast<unsigned>(scale))
                                         : edges[random() % 18];
            m = message(size, random() % 4 ? 0 : random() % 200, random);
        }
        check(messages);
    }
}

TEST_CASE("threads share large messages") {
    std::mt19937 random(5);
    for (const std::size_t size : {131'071, 131'072, 131'073, 200'000, 400'000}) {
        for (const std::size_t head : {0, 50, 1023, 1024, 5000}) check(std::vector{message(size, head, random)});
    }
}

TEST_CASE("pixels of four bytes are hashed as their first three, alone and in batches, at every length of a piece") {
    std::mt19937 random(11);
    const std::size_t counts[] = {0,   1,    2,    15,     16,     17,     21,     22,    341,
                                  342, 5461, 5462, 10'922, 10'923, 10'924, 21'845, 90'001};
    std::vector<Message> messages;
    std::vector<std::vector<std::uint8_t>> packed;
    for (const std::size_t count : counts) {
        for (const std::size_t head :
             {std::size_t{0}, std::size_t{1}, std::size_t{43}, std::size_t{64}, std::size_t{40'000}}) {
            const Bytes pixels = Bytes(bytes()).subspan(random() % 4096, 4 * count);
            messages.push_back({Bytes(bytes()).subspan(700'000 + random() % 4096, head), pixels, true});
            auto& plain = packed.emplace_back();
            for (std::size_t i = 0; i < pixels.size(); ++i)
                if (i % 4 != 3) plain.push_back(pixels[i]);
        }
        messages.push_back(message(count, 7, random));  // a plain one between them
        packed.emplace_back(messages.back().body.begin(), messages.back().body.end());
    }
    for (const auto algorithm : {Algorithm::sha256, Algorithm::blake3}) {
        std::vector<Digest> expected;
        for (std::size_t i = 0; i < messages.size(); ++i) {
            Hasher hasher(algorithm);
            hasher.update(messages[i].head);
            hasher.update(packed[i]);
            expected.push_back(hasher.digest());
        }
        for (const unsigned threads : {1u, 2u, 5u, 40u}) {
            std::vector<Digest> out(messages.size());
            digest_many(algorithm, messages, out, threads);
            CHECK(out == expected);
            for (std::size_t i = 0; i < messages.size(); ++i) {
                Digest one;
                digest_many(algorithm, std::span(&messages[i], 1), std::span(&one, 1), threads);
                CAPTURE(i);
                CHECK(one == expected[i]);
            }
        }
    }
}
