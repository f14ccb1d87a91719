// Block keys of long prompts against messages that are written here value by value and hashed one by one.
#include "mmkey/block_chain.h"
#include "mmkey/cbor.h"
#include "mmkey/keys.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

using namespace mmkey;

namespace {

/// A prompt of B with pictures where `random` puts them: between none and one in three blocks has one.
Request make_request(std::mt19937& random, std::size_t tokens) {
    Request request;
    std::vector<std::uint32_t> ids(tokens);
    for (auto& id : ids) id = static_cast<std::uint32_t>(random());
    request.token_ids = TokenIds(ids);
    request.layout.emplace();
    const std::size_t gap = random() % 3 == 0 ? tokens + 1 : 1 + random() % 900;
    for (std::size_t at = random() % gap; at < tokens;) {
        const std::size_t length = std::min<std::size_t>(tokens - at, 1 + random() % 600);
        Digest digest{};
        for (auto& byte : digest) byte = static_cast<std::uint8_t>(random());
        request.items.push_back(
            Item{{ContentKind::bytes, Algorithm::sha256, digest}, std::make_shared<ItemMetadata>(ItemFields{})});
        request.layout->push_back({at, length});
        at += length + random() % gap;
    }
    return request;
}

std::vector<Digest> naive_keys(const Prepared& prepared, bool partial) {
    std::vector<Digest> keys;
    const auto ids = prepared.token_ids.span();
    const std::size_t size = prepared.seed.block_size;
    Digest parent = prepared.seed.root;
    for (std::size_t begin = 0; begin < ids.size(); begin += size) {
        const std::size_t end = std::min(begin + size, ids.size());
        if (end - begin < size && !partial) break;
        std::vector<std::uint8_t> message;
        CborWriter writer(message);
        writer.array(4);
        writer.tokens(ids.subspan(begin, end - begin));
        std::vector<std::uint8_t> spans;
        CborWriter span_writer(spans);
        std::size_t count = 0;
        for (const Span& span : prepared.normal.spans) {
            const std::uint64_t from = std::max<std::uint64_t>(begin, span.offset);
            const std::uint64_t until = std::min<std::uint64_t>(end, span.end());
            if (from >= until) continue;
            ++count;
            span_writer.array(4);
            span_writer.bytes(prepared.identities.places[span.item]);
            span_writer.uint(from - begin);
            span_writer.uint(span.filled + from - span.offset);
            span_writer.uint(until - from);
        }
        writer.array(count);
        writer.encoded(spans);
        // The shortest pad with which the parent's bytes begin in the first 24 bytes of a block of 64.
        std::vector<std::uint8_t> padded;
        for (std::size_t pad = 0;; ++pad) {
            padded = message;
            CborWriter pad_writer(padded);
            pad_writer.bytes(std::vector<std::uint8_t>(pad));
            pad_writer.bytes(parent);
            if ((padded.size() - parent.size()) % 64 <= 23) break;
        }
        parent = digest(prepared.seed.algorithm, padded);
        keys.push_back(parent);
    }
    return keys;
}

}  // namespace

TEST_CASE("block keys of long prompts are the digests of their messages, alone, side by side and fed in pieces") {
    const unsigned seed = std::random_device{}();
    CAPTURE(seed);
    std::mt19937 random(seed);
    for (const Algorithm algorithm : {Algorithm::sha256, Algorithm::blake3}) {
        for (const std::size_t block_size : {1, 7, 13, 14, 15, 16, 17, 29, 30, 32, 64, 240, 256, 300}) {
            CAPTURE(block_size);
            const KeyEngine engine(Strategy::B, algorithm, block_size, {});
            std::vector<Request> requests;
            std::vector<Prepared> prepared;
            for (int i = 0; i < 5; ++i) {
                requests.push_back(make_request(random, random() % (60 * block_size)));
                prepared.push_back(engine.prepare(requests.back()));
            }
            std::vector<std::vector<Digest>> out, expected;
            std::vector<BlockKeys> wanted;
            for (const Prepared& one : prepared) {
                expected.push_back(naive_keys(one, true));
                out.emplace_back(block_count(one, true));
            }
            for (std::size_t i = 0; i < prepared.size(); ++i) wanted.push_back({&prepared[i], out[i]});
            block_keys_many(wanted);
            CHECK(out == expected);

            for (std::size_t i = 0; i < prepared.size(); ++i) {
                std::vector<Digest> some(random() % (expected[i].size() + 1));
                some.push_back({});  // not to be written
                block_keys(prepared[i], std::span(some).first(some.size() - 1));
                CHECK(some.back() == Digest{});
                CHECK(std::equal(some.begin(), some.end() - 1, expected[i].begin()));

                BlockChain chain(engine.seed());
                const auto ids = requests[i].token_ids.span();
                std::size_t fed = random() % (ids.size() + 1);
                Request part = requests[i];
                part.token_ids = TokenIds(ids.first(fed));
                chain.extend(part);
                while (fed < ids.size()) {
                    const std::size_t more = 1 + random() % std::min<std::size_t>(ids.size() - fed, 20 * block_size);
                    Request text;
                    text.token_ids = TokenIds(ids.subspan(fed, more));
                    chain.extend(text);
                    fed += more;
                }
                const auto keys = chain.keys();
                CHECK(keys.size() == prepared[i].full_blocks());
                CHECK(std::equal(keys.begin(), keys.end(), expected[i].begin()));
            }
        }
    }
}
