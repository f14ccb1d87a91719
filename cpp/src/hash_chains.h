// Chains of digests, K_i = H(prefix_i || K_(i-1)), link after link.
#pragma once

#include "mmkey/hash.h"

#include "kernels/kernels.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace mmkey::detail {

/// Some links of one chain, one behind the other. Not to be copied: `text` points into it until more room is needed.
struct Stretch {
    enum Kind : std::uint8_t {
        irregular,  // more than one compression needs the parent
        lone,       // one does, and there is no block before it
        led,        // one does, and there is
    };

    kernel::ChainLink links[kernel::stretch];
    std::size_t begin[kernel::stretch];  // of each prefix in `text`
    std::size_t bytes[kernel::stretch];
    std::size_t count = 0;
    std::size_t each = 0;  // the size of all of them, 0 where they differ
    // What was made of a link, but for the bytes of its prefix, holds for the next one at its place if that has the same size.
    std::size_t made_for[kernel::stretch];  // bytes of a prefix, or `nothing`
    Kind kind[kernel::stretch];
    std::size_t all_led = nothing;  // `each`, when the links were last made and all were of that kind
    std::size_t used = 0;
    std::size_t capacity = sizeof own;
    std::uint8_t* text = own;
    std::unique_ptr<std::uint8_t[]> larger;
    std::uint8_t own[1280];  // blocks of 16 tokens, even with media

    static constexpr std::size_t nothing = ~std::size_t{0};

    Stretch() noexcept { std::fill_n(made_for, kernel::stretch, nothing); }
    void clear() noexcept { count = used = 0; }
    std::span<const std::uint8_t> prefix(std::size_t n) const noexcept { return {text + begin[n], bytes[n]}; }
    void make_links(Algorithm algorithm) noexcept;
    bool full_of_led() const noexcept { return count == kernel::stretch && (all_led == each || each_is(led)); }

  private:
    bool each_is(Kind one) const noexcept { return std::ranges::count(kind, one) == kernel::stretch; }
};

/// Up to four chains, side by side. Whatever of a link is free of its parent runs in lanes over many links, and of a single
/// chain also in the time in which the links before wait for theirs.
///
/// In turn: begin chains; then, for each, `room` and `add` until no place is vacant or it ends; `step`; and so on; `finish` it.
class Chains {
  public:
    static constexpr std::size_t most = 4;

    explicit Chains(Algorithm algorithm);

    std::size_t size() const noexcept { return count_; }

    /// How many chains are faster side by side than one after the other: 1 or `most`.
    std::size_t best() const noexcept;

    /// One more chain, numbered size(): its first parent, and where its digests go in the order of its links.
    void begin(const Digest& parent, Digest* out);

    /// Where the next prefix of a chain is to be written, `bytes` at the most. Good until the next call for the chain.
    std::uint8_t* room(std::size_t chain, std::size_t bytes) {
        Stretch& next = *runs_[chain].next;
        if (next.capacity - next.used < bytes + readable) grow(next, bytes);
        return next.text + next.used;
    }

    /// `count` prefixes of `bytes` bytes each were written there, one behind the other. The chain has as many vacant places.
    void add(std::size_t chain, std::size_t bytes, std::size_t count) noexcept {
        Stretch& next = *runs_[chain].next;
        next.each = next.count == 0 || next.each == bytes ? bytes : 0;
        for (; count != 0; --count) {
            next.begin[next.count] = next.used;
            next.bytes[next.count++] = bytes;
            next.used += bytes;
        }
    }

    /// How many links may be added before the next `step`.
    std::size_t vacant(std::size_t chain) const noexcept { return kernel::stretch - runs_[chain].next->count; }

    /// Takes what was added under way.
    void step();

    /// Writes all digests of a chain that are not out yet, and forgets it; the last chain takes its number.
    void finish(std::size_t chain);

  private:
    static constexpr std::size_t readable = 32;  // bytes behind a prefix that may be read

    struct Run {
        Digest parent;
        Digest* out;
        // Of `now` all but the last blocks are hashed. `ready` is read only after `next` is written: a read of bytes that lie
        // across two stores waits until both have left the store buffer, and so for the links under way.
        Stretch *now, *ready, *next;

        void digested(std::size_t links) noexcept {
            out += links;
            parent = out[-1];
        }
    };

    static void grow(Stretch& stretch, std::size_t bytes);
    bool hash_ahead(Run& run);
    void lead(std::span<Run> runs);
    void digest_now();
    void digest_links(std::span<Run*> runs, std::size_t from, std::size_t count);
    void digest_each(Run& run);

    Algorithm algorithm_;
    kernel::ChainAhead* ahead_;  // or nullptr
    std::size_t count_ = 0;
    Run runs_[most];
    Stretch stretches_[3 * most];
};

}  // namespace mmkey::detail
