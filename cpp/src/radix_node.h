// A node of the prefix tree and what it holds: whole blocks, their slots, and the media that stand in them.
//
// A node is a run of blocks that no other prompt leaves in its middle. Token ids lie end to end, so matching is memcmp
// over long stretches; media are kept as stretches too, not block by block.
#pragma once

#include "mmkey/bytes.h"
#include "mmkey/request.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mmkey::radix {

struct Use;

/// A stretch of a node's positions that an item fills.
struct Media {
    std::uint64_t start;  ///< from the node's first position
    std::uint64_t length;
    std::uint64_t filled;  ///< positions of the item, over all its ranges, before this stretch
    Digest place;

    std::uint64_t end() const noexcept { return start + length; }
};

/// Links, counts and content. Only a tree's root has no parent, and it alone holds no block.
struct Node {
    Node* parent = nullptr;
    Node* child = nullptr;  ///< the first of its children, a list through `previous` and `next`
    Node* previous = nullptr;
    Node* next = nullptr;
    std::size_t children = 0;
    std::size_t holds = 0;   ///< that end with this node's last block
    std::size_t held = 0;    ///< that end here or below: this node's blocks stay while it is not 0
    std::uint64_t hash = 0;  ///< of parent and first block: where the child table keeps this node
    Use* newest = nullptr;   ///< uses that end in this node, see radix_lru.h
    Use* oldest = nullptr;
    const Digest* root = nullptr;  ///< of a root node: what its tree is known by

    std::vector<std::uint32_t> tokens;
    std::vector<std::int64_t> slots;  ///< one a block
    std::vector<Media> media;         ///< ascending, disjoint

    std::size_t blocks() const noexcept { return slots.size(); }
    /// What it asked the allocator for.
    std::size_t bytes() const noexcept {
        return sizeof(Node) + tokens.capacity() * sizeof(std::uint32_t) + slots.capacity() * sizeof(std::int64_t) +
               media.capacity() * sizeof(Media);
    }
};

/// A request from one of its block edges on.
class Query {
  public:
    Query(const Prepared& request, std::uint64_t block_size) noexcept : request_(&request), block_size_(block_size) {}

    const Prepared& request() const noexcept { return *request_; }
    std::uint64_t block_size() const noexcept { return block_size_; }
    std::uint64_t position() const noexcept { return position_; }
    const std::uint32_t* tokens() const noexcept { return request_->token_ids.data() + position_; }
    std::size_t span() const noexcept { return span_; }  ///< the first that ends after `position`

    void advance(std::size_t blocks) noexcept;

  private:
    const Prepared* request_;
    std::uint64_t block_size_;
    std::uint64_t position_ = 0;
    std::size_t span_ = 0;
};

/// How many leading blocks of `node` and the query, of at most `limit`, hold the same token ids and the same media.
/// Contents are compared whole; it reads no further than some 1,024 tokens past the first difference.
std::size_t same_blocks(const Node& node, const Query& query, std::size_t limit) noexcept;

/// A hash of the block that comes next. Equal blocks under one parent have equal hashes; `secret` keeps a client from
/// making prompts that meet.
std::uint64_t block_hash(const Node* parent, const Query& query, std::uint64_t secret) noexcept;
std::uint64_t block_hash(const Node& node, std::uint64_t block_size, std::uint64_t secret) noexcept;

/// Appends the query's next slots.size() blocks. Throws std::bad_alloc and changes nothing.
void append(Node& node, const Query& query, std::span<const std::int64_t> slots);

/// Keeps the first `blocks`, and no more memory than twice their need.
void truncate(Node& node, std::size_t blocks, std::uint64_t block_size) noexcept;

/// Moves the first `blocks` of `lower` to `upper`, which holds none. Throws std::bad_alloc and changes nothing.
void split(Node& upper, Node& lower, std::size_t blocks, std::uint64_t block_size);

/// Puts the blocks of `upper`, all of them, before those of `lower`. Throws std::bad_alloc and changes nothing.
void join(Node& upper, Node& lower, std::uint64_t block_size);

}  // namespace mmkey::radix
