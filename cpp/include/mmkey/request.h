// A request: token ids, items and where they stand; its normal form; and what is left of it once prepared for keys.
#pragma once

#include "mmkey/bytes.h"
#include "mmkey/hash.h"
#include "mmkey/item.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace mmkey {

/// Token ids of a prompt, placeholders included: immutable and shared.
class TokenIds {
  public:
    TokenIds() = default;
    TokenIds(std::shared_ptr<const std::uint32_t[]> data, std::size_t size) noexcept
        : data_(std::move(data)), size_(size) {}
    /// A copy of `ids`.
    explicit TokenIds(std::span<const std::uint32_t> ids);

    const std::uint32_t* data() const noexcept { return data_.get(); }
    std::size_t size() const noexcept { return size_; }
    std::span<const std::uint32_t> span() const noexcept { return {data_.get(), size_}; }
    operator std::span<const std::uint32_t>() const noexcept { return span(); }

  private:
    std::shared_ptr<const std::uint32_t[]> data_;
    std::size_t size_ = 0;
};

/// A run of prompt positions, in tokens.
struct Range {
    std::uint64_t offset;
    std::uint64_t length;

    std::uint64_t end() const noexcept { return offset + length; }
    friend bool operator==(const Range&, const Range&) = default;
};

struct Request {
    TokenIds token_ids;
    std::vector<Item> items;  ///< in any order: `order` says where each one stands
    std::optional<std::vector<Range>> layout =
        std::vector<Range>{};                         ///< ascending ranges; nothing means that the layout is not known
    std::optional<std::vector<std::uint64_t>> order;  ///< the listed item of each range; by default 0, 1, 2, ...
};

/// A range in normal form.
struct Span {
    std::uint64_t offset;  ///< first position in the prompt
    std::uint64_t length;
    std::uint64_t filled;  ///< positions of the item, over all its ranges, before this one
    std::uint32_t item;    ///< in normal order

    std::uint64_t end() const noexcept { return offset + length; }
    friend bool operator==(const Span&, const Span&) = default;
};

/// Items numbered by first appearance in the prompt, touching ranges of one item merged: what two callers who mean the
/// same prompt agree on.
struct NormalForm {
    std::vector<std::uint32_t> appearance;  ///< the listed index of each item in its new place
    std::vector<Span> spans;                ///< ascending, disjoint
};

/// The normal form of a layout within positions [begin, end). Throws InvalidRequest (`layout[i]`, `layout`, `order[i]`,
/// `order`, `items[i]`) for a range that is empty, overlaps, is out of order or leaves the prompt, an order of another length or
/// that names no item, and an item that no range holds.
NormalForm normal_form(std::span<const Range> layout, const std::optional<std::vector<std::uint64_t>>& order,
                       std::size_t item_count, std::uint64_t begin, std::uint64_t end);

enum class Strategy : std::uint8_t { A, B, C };

char letter(Strategy strategy) noexcept;

/// What every block of a chain shares: who chains, how, and from where.
struct ChainSeed {
    Strategy strategy;
    Algorithm algorithm;
    std::uint64_t block_size;  ///< tokens, at least 1
    Digest root;               ///< K_(-1); holds strategy, block size, and scope (C) or salt (A, B)

    friend bool operator==(const ChainSeed&, const ChainSeed&) = default;
};

/// Checks everything about a request that no digest is needed for, under the rules of `strategy`; item contents count
/// by their kind alone. The normal form is empty where the layout is not known. Positions run in [begin, end).
NormalForm check(Strategy strategy, const Request& request, std::uint64_t begin, std::uint64_t end);

/// What B (the contents) and C (the item digests) know items by, and where they stand. In normal order, which without a
/// layout is the order listed. A knows no items.
struct Identities {
    std::vector<Content> contents;     ///< B
    std::vector<Digest> item_digests;  ///< C
    std::vector<Digest> places;  ///< one for each item that has ranges: H(enc(["mmkey/placed/1", identity, ranges]))
};

Identities identify(const ChainSeed& seed, std::span<const Item> items, const NormalForm& normal);

/// A request, validated, in normal form and with its media hashed: all that request keys, block keys and the prefix
/// index need. Immutable once made; copies share the token ids.
struct Prepared {
    ChainSeed seed;
    TokenIds token_ids;
    NormalForm normal;  ///< appearance empty for A; spans are what enters the blocks: none for A
    Identities identities;
    bool has_blocks = true;           ///< false for B with items and no layout: it has a request key only
    std::vector<std::string> unsafe;  ///< why a hit on its keys may be false; empty when nothing is known

    std::size_t full_blocks() const noexcept { return token_ids.size() / seed.block_size; }
};

}  // namespace mmkey
