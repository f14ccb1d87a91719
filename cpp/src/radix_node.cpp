#include "radix_node.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

namespace mmkey::radix {

namespace {

/// A stretch of media, of a node or a request, with positions from a common start.
struct Piece {
    std::uint64_t start;
    std::uint64_t end;
    std::uint64_t filled;
    const Digest* place;
};

constexpr std::uint64_t nowhere = std::numeric_limits<std::uint64_t>::max();
constexpr Piece no_piece{nowhere, nowhere, 0, nullptr};

/// The pieces of a node, in order.
class NodePieces {
  public:
    explicit NodePieces(const Node& node) noexcept : next_(node.media.data()), end_(next_ + node.media.size()) {}

    Piece operator*() const noexcept {
        return next_ == end_ ? no_piece : Piece{next_->start, next_->end(), next_->filled, &next_->place};
    }
    void operator++() noexcept { ++next_; }

  private:
    const Media* next_;
    const Media* end_;
};

/// The pieces of a request from the query's position on; the first may have begun before it.
class QueryPieces {
  public:
    explicit QueryPieces(const Query& query) noexcept
        : request_(query.request()), origin_(query.position()), next_(query.span()) {}

    Piece operator*() const noexcept {
        if (next_ == request_.normal.spans.size()) return no_piece;
        const Span& span = request_.normal.spans[next_];
        const std::uint64_t begun = span.offset < origin_ ? origin_ - span.offset : 0;
        return {span.offset + begun - origin_, span.end() - origin_, span.filled + begun,
                &request_.identities.places[span.item]};
    }
    void operator++() noexcept { ++next_; }

  private:
    const Prepared& request_;
    std::uint64_t origin_;
    std::size_t next_;
};

/// The first position below `limit` at which media differ, or `limit`. Where one stretch goes on as another, with the
/// same place and the count going on, a cut at a block edge is none: the two blocks hold the same either way.
std::uint64_t media_difference(NodePieces mine, QueryPieces theirs, std::uint64_t limit,
                               std::uint64_t block_size) noexcept {
    std::uint64_t at = 0;
    while (true) {
        const Piece a = *mine;
        const Piece b = *theirs;
        const std::uint64_t start_a = std::max(a.start, at);
        const std::uint64_t start_b = std::max(b.start, at);
        const std::uint64_t start = std::min(start_a, start_b);
        if (start >= limit) return limit;
        if (start_a != start_b) return start;
        if (a.filled + (start - a.start) != b.filled + (start - b.start) || *a.place != *b.place) return start;
        const bool cut = (a.start == start) != (b.start == start);
        if (cut && start % block_size != 0) return start;
        at = std::min(a.end, b.end);
        if (a.end == at) ++mine;
        if (b.end == at) ++theirs;
    }
}

/// The first of `count` places where two arrays differ, to 16 places: all before what it returns are equal.
std::size_t token_difference(const std::uint32_t* a, const std::uint32_t* b, std::size_t count) noexcept {
    constexpr std::size_t stride = 1024;
    constexpr std::size_t small = 16;
    const auto equal = [&](std::size_t from, std::size_t length) {
        return std::memcmp(a + from, b + from, length * sizeof(std::uint32_t)) == 0;
    };
    std::size_t from = 0;
    while (from < count && equal(from, std::min(stride, count - from))) from += std::min(stride, count - from);
    std::size_t length = std::min(stride, count - from);
    while (length > small) {
        const std::size_t half = length / 2;
        if (equal(from, half)) {
            from += half;
            length -= half;
        } else {
            length = half;
        }
    }
    while (from < count && a[from] == b[from]) ++from;
    return from;
}

/// The halves of a 128-bit product, folded. No input bit is lost but where a factor is 0, which `secret` makes a matter
/// of chance.
std::uint64_t fold(std::uint64_t a, std::uint64_t b) noexcept {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

template <class Pieces>
std::uint64_t hash_block(const Node* parent, const std::uint32_t* tokens, std::uint64_t block_size, Pieces pieces,
                         std::uint64_t secret) noexcept {
    constexpr std::uint64_t odd = 0x9e3779b97f4a7c15u;
    std::uint64_t state = reinterpret_cast<std::uintptr_t>(parent) ^ secret;
    const auto mix = [&](std::uint64_t low, std::uint64_t high) { state = fold(low ^ secret, high ^ state); };
    std::uint64_t words[4];
    std::uint64_t i = 0;
    std::uint64_t other = state * odd;  // a second lane, since each product waits for the one before
    for (; i + 8 <= block_size; i += 8) {
        std::memcpy(words, tokens + i, sizeof words);
        mix(words[0], words[1]);
        other = fold(words[2] ^ (secret * odd), words[3] ^ other);
    }
    state ^= other;
    for (; i < block_size; ++i) mix(tokens[i], i);
    for (Piece piece = *pieces; piece.start < block_size; ++pieces, piece = *pieces) {
        std::memcpy(words, piece.place->data(), 2 * sizeof *words);
        mix(words[0] ^ piece.start, words[1] ^ (std::min(piece.end, block_size) - piece.start));
        mix(piece.filled, 1);
    }
    return fold(state ^ secret, odd);
}

/// What a vector of `size` reserves to take `extra` more: exact at first, then in steps that make growth token by token
/// cost O(1) each and waste an eighth.
template <class T>
void make_room(std::vector<T>& values, std::size_t extra) {
    const std::size_t need = values.size() + extra;
    if (need > values.capacity()) values.reserve(values.empty() ? need : std::max(need, need + values.size() / 8));
}

template <class T>
void cut(std::vector<T>& values, std::size_t size) noexcept {
    values.erase(values.begin() + static_cast<std::ptrdiff_t>(size), values.end());
    if (values.capacity() < 2 * size || values.capacity() == 0) return;
    try {
        std::vector<T>(values).swap(values);
    } catch (const std::bad_alloc&) {
        // What is there holds it as well.
    }
}

/// The stretches of the query's next `length` positions.
std::size_t count_media(const Query& query, std::uint64_t length) noexcept {
    std::size_t count = 0;
    for (QueryPieces pieces(query); (*pieces).start < length; ++pieces) ++count;
    return count;
}

/// Appends a stretch, as one with the last where that goes on over a block edge. Room is made before.
void push(std::vector<Media>& media, const Media& next, std::uint64_t block_size) noexcept {
    if (!media.empty() && next.start % block_size == 0) {
        Media& last = media.back();
        if (last.end() == next.start && last.filled + last.length == next.filled && last.place == next.place) {
            last.length += next.length;
            return;
        }
    }
    media.push_back(next);
}

}  // namespace

void Query::advance(std::size_t blocks) noexcept {
    position_ += blocks * block_size_;
    const std::vector<Span>& spans = request_->normal.spans;
    while (span_ < spans.size() && spans[span_].end() <= position_) ++span_;
}

std::size_t same_blocks(const Node& node, const Query& query, std::size_t limit) noexcept {
    const std::uint64_t block_size = query.block_size();
    const std::size_t blocks = std::min(limit, node.blocks());
    std::uint64_t same = token_difference(node.tokens.data(), query.tokens(), blocks * block_size);
    same = media_difference(NodePieces(node), QueryPieces(query), same, block_size);
    return same / block_size;
}

std::uint64_t block_hash(const Node* parent, const Query& query, std::uint64_t secret) noexcept {
    return hash_block(parent, query.tokens(), query.block_size(), QueryPieces(query), secret);
}

std::uint64_t block_hash(const Node& node, std::uint64_t block_size, std::uint64_t secret) noexcept {
    return hash_block(node.parent, node.tokens.data(), block_size, NodePieces(node), secret);
}

void append(Node& node, const Query& query, std::span<const std::int64_t> slots) {
    const std::uint64_t length = slots.size() * query.block_size();
    make_room(node.tokens, length);
    make_room(node.slots, slots.size());
    make_room(node.media, count_media(query, length));

    const std::uint64_t before = node.tokens.size();
    node.tokens.insert(node.tokens.end(), query.tokens(), query.tokens() + length);
    node.slots.insert(node.slots.end(), slots.begin(), slots.end());
    QueryPieces pieces(query);
    for (Piece piece = *pieces; piece.start < length; ++pieces, piece = *pieces) {
        const std::uint64_t end = std::min(piece.end, length);
        push(node.media, {before + piece.start, end - piece.start, piece.filled, *piece.place}, query.block_size());
    }
}

void truncate(Node& node, std::size_t blocks, std::uint64_t block_size) noexcept {
    const std::uint64_t length = blocks * block_size;
    while (!node.media.empty() && node.media.back().start >= length) node.media.pop_back();
    if (!node.media.empty()) {
        Media& last = node.media.back();
        last.length = std::min(last.length, length - last.start);
    }
    cut(node.media, node.media.size());
    cut(node.tokens, length);
    cut(node.slots, blocks);
}

void split(Node& upper, Node& lower, std::size_t blocks, std::uint64_t block_size) {
    const std::uint64_t length = blocks * block_size;
    std::vector<std::uint32_t> tokens(lower.tokens.begin() + static_cast<std::ptrdiff_t>(length), lower.tokens.end());
    std::vector<std::int64_t> slots(lower.slots.begin() + static_cast<std::ptrdiff_t>(blocks), lower.slots.end());
    std::vector<Media> media;
    for (const Media& stretch : lower.media) {
        if (stretch.end() <= length) continue;
        const std::uint64_t begun = stretch.start < length ? length - stretch.start : 0;
        media.push_back(
            {stretch.start + begun - length, stretch.length - begun, stretch.filled + begun, stretch.place});
    }
    upper.tokens = std::exchange(lower.tokens, std::move(tokens));
    upper.slots = std::exchange(lower.slots, std::move(slots));
    upper.media = std::exchange(lower.media, std::move(media));
    truncate(upper, blocks, block_size);
}

void join(Node& upper, Node& lower, std::uint64_t block_size) {
    make_room(upper.tokens, lower.tokens.size());
    make_room(upper.slots, lower.slots.size());
    make_room(upper.media, lower.media.size());
    const std::uint64_t length = upper.tokens.size();
    upper.tokens.insert(upper.tokens.end(), lower.tokens.begin(), lower.tokens.end());
    upper.slots.insert(upper.slots.end(), lower.slots.begin(), lower.slots.end());
    for (Media stretch : lower.media) {
        stretch.start += length;
        push(upper.media, stretch, block_size);
    }
    lower.tokens = std::move(upper.tokens);
    lower.slots = std::move(upper.slots);
    lower.media = std::move(upper.media);
}

}  // namespace mmkey::radix
