#include "mmkey/block_chain.h"

#include "mmkey/cbor.h"
#include "mmkey/error.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <iterator>
#include <limits>
#include <utility>

namespace mmkey {

namespace {

constexpr std::size_t parent_head_size = 2;    // 58 20: a byte string of 32 bytes
constexpr std::size_t last_parent_start = 23;  // 23 + 32 bytes leave room for SHA-256's own padding of 9
constexpr std::size_t batch_bytes = 64 << 10;  // of messages made before they are hashed: they stay in the L2 cache

/// Builds the messages of consecutive blocks, each less its parent.
class LinkWriter {
  public:
    explicit LinkWriter(std::uint64_t block_size) : block_size_(block_size) {}

    /// The block of `ids` at positions [begin, begin + ids.size()). `parts`: what overlaps it, ascending; `look` gives a
    /// part's span and place.
    template <typename Parts, typename Look>
    void add(std::span<const std::uint32_t> ids, std::uint64_t begin, const Parts& parts, Look&& look) {
        if (parts.empty() && ids.size() == block_size_) return add_text(ids);
        const std::size_t start = bytes_.size();
        CborWriter writer(bytes_);
        writer.array(4);
        writer.tokens(ids);
        writer.array(parts.size());
        for (const auto& part : parts) {
            const auto& [span, place] = look(part);
            const std::uint64_t from = std::max(begin, span.offset);
            const std::uint64_t to = std::min(begin + ids.size(), span.end());
            writer.array(4);
            writer.bytes(place);
            writer.uint(from - begin);
            writer.uint(span.filled + from - span.offset);
            writer.uint(to - from);
        }
        finish(writer, start);
    }

    bool full() const noexcept { return bytes_.size() >= batch_bytes; }

    /// Hashes what was added since the last call, after `parent`, into `out`; returns the last key.
    Digest hash(Algorithm algorithm, const Digest& parent, Digest* out) {
        if (sizes_.empty()) return parent;
        const Chain chain{bytes_, sizes_, parent, out};
        digest_chains(algorithm, {&chain, 1});
        const Digest last = out[sizes_.size() - 1];
        bytes_.clear();
        sizes_.clear();
        return last;
    }

  private:
    /// A full block of text: but for its ids it is the same message each time.
    void add_text(std::span<const std::uint32_t> ids) {
        if (before_ids_.empty()) {
            CborWriter before(before_ids_);
            before.array(4);
            before.tokens_head(ids.size());
            CborWriter after(after_ids_);
            after.array(0);
            pad(after, after_ids_, before_ids_.size() + ids.size_bytes() + after_ids_.size());
        }
        const std::size_t size = before_ids_.size() + ids.size_bytes() + after_ids_.size();
        const std::size_t start = bytes_.size();
        bytes_.resize(start + size);
        std::uint8_t* to = bytes_.data() + start;
        to = std::ranges::copy(before_ids_, to).out;
        std::memcpy(to, ids.data(), ids.size_bytes());
        std::ranges::copy(after_ids_, to + ids.size_bytes());
        sizes_.push_back(std::uint32_t(size));
    }

    void finish(CborWriter& writer, std::size_t start) {
        pad(writer, bytes_, bytes_.size() - start);
        sizes_.push_back(std::uint32_t(bytes_.size() - start));
    }

    /// The pad and the head of the parent, after `ahead` bytes of the message.
    static void pad(CborWriter& writer, std::vector<std::uint8_t>& bytes, std::size_t ahead) {
        std::size_t n = 0;
        const auto parent_start = [&] { return ahead + (n < 24 ? 1 : 2) + n + parent_head_size; };
        while (parent_start() % 64 > last_parent_start) ++n;
        writer.bytes_head(n);
        bytes.resize(bytes.size() + n);
        writer.bytes_head(sizeof(Digest));
    }

    std::uint64_t block_size_;
    std::vector<std::uint8_t> before_ids_, after_ids_;
    std::vector<std::uint8_t> bytes_;
    std::vector<std::uint32_t> sizes_;
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

void block_keys(const Prepared& prepared, std::span<Digest> out) {
    if (!prepared.has_blocks) fail_without_layout();
    const auto ids = prepared.token_ids.span();
    const auto& places = prepared.identities.places;
    const auto look = [&](const Span& span) { return std::pair<const Span&, const Digest&>(span, places[span.item]); };
    const std::size_t size = prepared.seed.block_size;
    Digest parent = prepared.seed.root;
    LinkWriter links(size);
    auto first = prepared.normal.spans.begin();
    const auto last = prepared.normal.spans.end();
    for (std::size_t block = 0, done = 0; block < out.size(); ++block) {
        const std::size_t begin = block * size;
        const std::size_t length = std::min(size, ids.size() - begin);
        links.add(ids.subspan(begin, length), begin, overlapping(first, last, begin, begin + length, std::identity()),
                  look);
        if (links.full() || block + 1 == out.size()) {
            parent = links.hash(prepared.seed.algorithm, parent, &out[done]);
            done = block + 1;
        }
    }
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
    LinkWriter links(seed_.block_size);
    auto first = ahead_.begin();
    for (std::size_t block = before, done = before; block < keys_.size(); ++block) {
        const std::uint64_t begin = block * seed_.block_size;
        const std::size_t taken = std::size_t(seed_.block_size) - tail_.size();
        const auto parts = overlapping(first, ahead_.end(), begin, begin + seed_.block_size, span_of);
        if (tail_.empty()) {
            links.add(ids.first(taken), begin, parts, look);
        } else {
            tail_.insert(tail_.end(), ids.begin(), ids.begin() + std::ptrdiff_t(taken));
            links.add(tail_, begin, parts, look);
            tail_.clear();
        }
        ids = ids.subspan(taken);
        size_ += taken;
        if (links.full() || block + 1 == keys_.size()) {
            parent_ = links.hash(seed_.algorithm, parent_, &keys_[done]);
            done = block + 1;
        }
    }
    tail_.insert(tail_.end(), ids.begin(), ids.end());
    size_ += ids.size();
    while (first != ahead_.end() && first->span.end() <= size_ - tail_.size()) ++first;
    ahead_.erase(ahead_.begin(), first);
    return fresh;
}

}  // namespace mmkey
