#include "mmkey/block_chain.h"

#include "mmkey/cbor.h"
#include "mmkey/error.h"

#include "hash_chains.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <utility>

namespace mmkey {

using detail::Chains;

namespace {

constexpr std::size_t most_head = 9;      // bytes of the head of a value
constexpr std::size_t most_pad = 48;      // bytes, in fact 39
constexpr std::size_t most_around = 128;  // bytes of a message besides its ids and spans: heads and a pad
constexpr std::size_t most_span = 2 * most_head + sizeof(Digest) + 3 * most_head;

/// The fewest zero bytes that let the parent begin at an offset o with o mod 64 <= 23, where the head of the pad comes
/// `ahead` bytes into the message: 32 bytes of parent and 9 of SHA-256's own padding then fill one compression.
constexpr std::size_t pad_size(std::size_t ahead) noexcept {
    const std::size_t start =
        (ahead + 3) % 64;  // of the parent, with no pad: past the pad's head of 1 and its own of 2
    if (start <= 23) return 0;
    const std::size_t to_next = 64 - start;
    return to_next < 24 ? to_next : std::max<std::size_t>(24, to_next - 1);  // a pad of 24 has one byte more of head
}

/// Writes the messages of consecutive blocks, each less its parent, where they are hashed.
class BlockWriter {
  public:
    explicit BlockWriter(std::size_t block_size) : block_size_(block_size) {
        std::uint8_t* to = write_tokens_head(write_head(opening_, Major::array, 4), block_size);
        opening_size_ = std::size_t(to - opening_);
        closing_size_ = std::size_t(
            write_parent_head(write_head(closing_, Major::array, 0), opening_size_ + 4 * block_size + 1) - closing_);
    }

    /// Adds full blocks without media until the chain is full or `blocks` are added; gives how many.
    std::size_t add_text(Chains& chains, std::size_t chain, const std::uint32_t* ids, std::size_t blocks) const {
        // Copies of what the loop needs: a store of bytes may change any member, for all that the compiler knows.
        const std::size_t opening = opening_size_, closing = closing_size_, size = block_size_;
        const std::size_t bytes = opening + 4 * size + closing;
        blocks = std::min(blocks, chains.vacant(chain));
        std::uint8_t* to = chains.room(chain, blocks * bytes + most_around);
        for (std::size_t n = 0; n < blocks; ++n, to += bytes, ids += size) {
            std::memcpy(to, opening_, sizeof opening_);
            copy_ids(to + opening, ids, size);
            std::uint8_t* const end = to + opening + 4 * size;
            std::memcpy(end, closing_, 16);
            if (closing > 16) std::memcpy(end + 16, closing_ + 16, sizeof closing_ - 16);
        }
        chains.add(chain, bytes, blocks);
        return blocks;
    }

    /// The block of `ids` at positions [begin, begin + ids.size()). `parts`: what overlaps it, ascending; `look` gives a
    /// part's span and place.
    template <typename Parts, typename Look>
    void add_block(Chains& chains, std::size_t chain, std::span<const std::uint32_t> ids, std::uint64_t begin,
                   const Parts& parts, Look&& look) const {
        std::uint8_t* const start = chains.room(chain, ids.size_bytes() + parts.size() * most_span + most_around);
        std::uint8_t* to = start + opening_size_;
        if (ids.size() == block_size_) {
            std::memcpy(start, opening_, sizeof opening_);
        } else {
            to = write_tokens_head(write_head(start, Major::array, 4), ids.size());
        }
        copy_ids(to, ids.data(), ids.size());
        to = write_head(to + ids.size_bytes(), Major::array, parts.size());
        for (const auto& part : parts) {
            const auto& [span, place] = look(part);
            const std::uint64_t from = std::max(begin, span.offset);
            const std::uint64_t until = std::min(begin + ids.size(), span.end());
            to = write_head(to, Major::array, 4);
            to = write_head(to, Major::bytes, sizeof place);
            to = std::ranges::copy(place, to).out;
            to = write_head(to, Major::uint, from - begin);
            to = write_head(to, Major::uint, span.filled + from - span.offset);
            to = write_head(to, Major::uint, until - from);
        }
        to = write_parent_head(to, std::size_t(to - start));
        chains.add(chain, std::size_t(to - start), 1);
    }

  private:
    /// `ahead`: the bytes before it.
    static std::uint8_t* write_parent_head(std::uint8_t* to, std::size_t ahead) noexcept {
        const std::size_t pad = pad_size(ahead);
        to = write_head(to, Major::bytes, pad);
        std::memset(to, 0, most_pad);  // of a constant size: no call
        return write_head(to + pad, Major::bytes, sizeof(Digest));
    }

    /// Without a call, which would cost more: blocks are short.
    static void copy_ids(std::uint8_t* to, const std::uint32_t* ids, std::size_t count) noexcept {
        for (; count >= 16; count -= 16, ids += 16, to += 64) std::memcpy(to, ids, 64);
        for (; count >= 4; count -= 4, ids += 4, to += 16) std::memcpy(to, ids, 16);
        std::memcpy(to, ids, 4 * count);
    }

    std::size_t block_size_, opening_size_, closing_size_;
    std::uint8_t opening_[2 * most_head + 6] = {};  // of a full block, up to its ids
    std::uint8_t closing_[16 + most_pad] = {};      // of a full block without media, after them
};

/// What of `spans` overlaps positions [begin, end); drops from `first` what ends before, since blocks only ascend.
template <typename Iterator, typename SpanOf>
std::span<const std::iter_value_t<Iterator>> overlapping(Iterator& first, Iterator last, std::uint64_t begin,
                                                         std::uint64_t end, SpanOf&& span_of) {
    while (first != last && span_of(*first).end() <= begin) ++first;
    auto stop = first;
    while (stop != last && span_of(*stop).offset < end) ++stop;
    return {first, stop};
}

[[noreturn]] void fail_without_layout() {
    throw InvalidRequest("layout", "is None; block keys of a request with items need to know where they stand");
}

}  // namespace

std::size_t block_count(const Prepared& prepared, bool partial) noexcept {
    const bool tail = partial && prepared.token_ids.size() % prepared.seed.block_size != 0;
    return prepared.full_blocks() + tail;
}

namespace {

/// The blocks of one prepared request, as they come under way.
class Walk {
  public:
    explicit Walk(const BlockKeys& wanted)
        : prepared_(wanted.prepared),
          writer_(prepared_->seed.block_size),
          blocks_(wanted.out.size()),
          first_(prepared_->normal.spans.begin()) {}

    bool finished() const noexcept { return next_ == blocks_; }

    void add_to(Chains& chains, std::size_t chain) {
        const auto ids = prepared_->token_ids.span();
        const std::size_t size = prepared_->seed.block_size;
        const auto look = [&](const Span& span) {
            return std::pair<const Span&, const Digest&>(span, prepared_->identities.places[span.item]);
        };
        while (!finished() && chains.vacant(chain) != 0) {
            const std::size_t begin = next_ * size;
            const std::size_t length = std::min(size, ids.size() - begin);
            const auto parts =
                overlapping(first_, prepared_->normal.spans.end(), begin, begin + length, std::identity());
            if (parts.empty() && length == size) {
                const std::uint64_t until =
                    first_ == prepared_->normal.spans.end() ? ids.size() : std::min(first_->offset, ids.size());
                const std::size_t blocks = std::min<std::size_t>((until - begin) / size, blocks_ - next_);
                next_ += writer_.add_text(chains, chain, &ids[begin], blocks);
            } else {
                writer_.add_block(chains, chain, ids.subspan(begin, length), begin, parts, look);
                ++next_;
            }
        }
    }

  private:
    const Prepared* prepared_;
    BlockWriter writer_;
    std::size_t blocks_, next_ = 0;
    std::vector<Span>::const_iterator first_;
};

}  // namespace

void block_keys_many(std::span<const BlockKeys> wanted) {
    if (wanted.empty()) return;
    const Algorithm algorithm = wanted.front().prepared->seed.algorithm;
    for (const BlockKeys& one : wanted) {
        if (!one.prepared->has_blocks) fail_without_layout();
        if (one.prepared->seed.algorithm != algorithm)
            throw InvalidRequest("algorithm", "is not one for all; requests of two algorithms share no lanes");
    }
    Chains chains(algorithm);
    std::vector<Walk> walks;  // of each chain under way
    for (auto next = wanted.begin(); next != wanted.end() || !walks.empty();) {
        for (; walks.size() < chains.best() && next != wanted.end(); ++next) {
            if (next->out.empty()) continue;
            walks.emplace_back(*next);
            chains.begin(next->prepared->seed.root, next->out.data());
        }
        for (std::size_t n = 0; n < walks.size(); ++n) walks[n].add_to(chains, n);
        chains.step();
        for (std::size_t n = walks.size(); n-- > 0;) {
            if (!walks[n].finished()) continue;
            chains.finish(n);
            walks[n] = walks.back();
            walks.pop_back();
        }
    }
}

void block_keys(const Prepared& prepared, std::span<Digest> out) {
    const BlockKeys one{&prepared, out};
    block_keys_many({&one, 1});
}

NormalForm BlockChain::check(const Request& part) const {
    if (seed_.strategy != Strategy::A && !part.layout && !part.items.empty()) fail_without_layout();
    NormalForm normal = mmkey::check(seed_.strategy, part, size_, std::numeric_limits<std::uint64_t>::max());
    for (const Placed& earlier : ahead_) {
        const auto next = std::ranges::upper_bound(normal.spans, earlier.span.offset, {}, &Span::end);
        if (next != normal.spans.end() && next->offset < earlier.span.end())
            throw InvalidRequest("layout", "[" + std::to_string(next->offset) + ", " + std::to_string(next->length) +
                                               "] overlaps [" + std::to_string(earlier.span.offset) + ", " +
                                               std::to_string(earlier.span.length) + "], which was declared earlier");
    }
    return normal;
}

std::size_t BlockChain::append(const Request& part, const NormalForm& normal) {
    if (seed_.strategy != Strategy::A) declare(normal, identify(seed_, part.items, normal));
    return feed(part.token_ids);
}

std::size_t BlockChain::append(const Prepared& prepared) {
    if (prepared.seed != seed_ || size_ != 0)
        throw InvalidRequest("request", "was prepared by another engine, or follows tokens fed before");
    if (!prepared.has_blocks) fail_without_layout();
    declare(prepared.normal, prepared.identities);
    return feed(prepared.token_ids);
}

void BlockChain::declare(const NormalForm& normal, const Identities& identities) {
    for (const Span& span : normal.spans) ahead_.push_back({span, identities.places[span.item]});
    std::ranges::sort(ahead_, {}, [](const Placed& placed) { return placed.span.offset; });
}

std::size_t BlockChain::feed(std::span<const std::uint32_t> ids) {
    const auto look = [](const Placed& placed) {
        return std::pair<const Span&, const Digest&>(placed.span, placed.place);
    };
    const auto span_of = [](const Placed& placed) -> const Span& { return placed.span; };
    const std::size_t before = keys_.size();
    const std::size_t fresh = (tail_.size() + ids.size()) / seed_.block_size;
    keys_.resize(before + fresh);
    const BlockWriter writer(seed_.block_size);
    Chains chains(seed_.algorithm);
    chains.begin(parent_, keys_.data() + before);
    auto first = ahead_.begin();
    for (std::size_t block = before; block < keys_.size();) {
        const std::uint64_t begin = block * seed_.block_size;
        const auto parts = overlapping(first, ahead_.end(), begin, begin + seed_.block_size, span_of);
        const std::size_t taken = std::size_t(seed_.block_size) - tail_.size();
        std::size_t added = 1;
        if (!tail_.empty()) {
            tail_.insert(tail_.end(), ids.begin(), ids.begin() + std::ptrdiff_t(taken));
            writer.add_block(chains, 0, tail_, begin, parts, look);
            tail_.clear();
        } else if (!parts.empty()) {
            writer.add_block(chains, 0, ids.first(taken), begin, parts, look);
        } else {
            const std::size_t text = first == ahead_.end() ? keys_.size() : first->span.offset / seed_.block_size;
            added = writer.add_text(chains, 0, ids.data(), std::min(text, keys_.size()) - block);
        }
        const std::size_t fed = taken + (added - 1) * seed_.block_size;
        ids = ids.subspan(fed);
        size_ += fed;
        block += added;
        if (chains.vacant(0) == 0) chains.step();
    }
    chains.finish(0);
    if (fresh != 0) parent_ = keys_.back();
    tail_.insert(tail_.end(), ids.begin(), ids.end());
    size_ += ids.size();
    while (first != ahead_.end() && first->span.end() <= size_ - tail_.size()) ++first;
    ahead_.erase(ahead_.begin(), first);
    return fresh;
}

}  // namespace mmkey
