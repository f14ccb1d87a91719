// The block chain: K_i = H(enc([tokens_i, spans_i, pad, K_(i-1)])), so that a block key stands for the whole prefix.
//
// The parent comes last, and the pad puts it whole into the message's final 64-byte compression: all else of a message
// is free of the chain and may be hashed ahead, many blocks side by side.
#pragma once

#include "mmkey/bytes.h"
#include "mmkey/request.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mmkey {

/// How many blocks there are, with `partial` the tail that fills none as well.
std::size_t block_count(const Prepared& prepared, bool partial) noexcept;

/// The keys of the first `out.size()` blocks, at most `block_count`: of the full ones, and as the last one of the tail
/// that fills none. Throws InvalidRequest (`layout`) where strategy B was given items without one.
void block_keys(const Prepared& prepared, std::span<Digest> out);

/// What `block_keys_many` is asked for: the first `out.size()` blocks of a request.
struct BlockKeys {
    const Prepared* prepared;
    std::span<Digest> out;
};

/// The block keys of several requests of one algorithm, whose chains are hashed side by side: each waits for its own
/// parent alone. Throws InvalidRequest (`layout`, `algorithm`) before anything is written.
void block_keys_many(std::span<const BlockKeys> wanted);

/// The keys of a sequence that grows, as in decoding. Feeding it in pieces gives what one call gives, and a new block
/// costs the same however long the sequence is. Not locked: one thread at a time.
class BlockChain {
  public:
    /// An empty sequence.
    explicit BlockChain(const ChainSeed& seed) noexcept : seed_(seed), parent_(seed.root) {}

    const ChainSeed& seed() const noexcept { return seed_; }
    std::uint64_t size() const noexcept { return size_; }
    std::span<const Digest> keys() const noexcept { return keys_; }

    /// Appends tokens. Offsets of the layout count from the start of the sequence, `order` numbers this call's items; an
    /// item's whole layout comes no later than its first token and may reach past the tokens fed so far.
    /// Returns how many keys are new. Throws InvalidRequest and stays as it was.
    std::size_t extend(const Request& part) { return append(part, check(part)); }
    /// The two halves of `extend`: `check` looks at content kinds alone, so contents may be hashed between the two.
    NormalForm check(const Request& part) const;
    std::size_t append(const Request& part, const NormalForm& normal);
    /// Appends a whole request to an empty sequence. Throws InvalidRequest (`request`) where another engine prepared it.
    std::size_t append(const Prepared& prepared);

  private:
    struct Placed {
        Span span;
        Digest place;
    };

    void declare(const NormalForm& normal, const Identities& identities);
    std::size_t feed(std::span<const std::uint32_t> ids);

    ChainSeed seed_;
    Digest parent_;
    std::uint64_t size_ = 0;
    std::vector<std::uint32_t> tail_;  // tokens of the block under way
    std::vector<Placed> ahead_;        // ascending: spans that end after the first position of the block under way
    std::vector<Digest> keys_;
};

}  // namespace mmkey
