// The prefix trees, one for each root, for one thread at a time: find, extend, hold, evict, remove.
//
// Invariants, all verified by `check`:
//   - A node holds at least one block, and no two children of a node begin with the same block, so a prompt has one path.
//   - A node that is not a root has no child or at least two, unless a hold ends with it. So there are fewer inner nodes
//     than leaves and holds, and a conversation that grows stays one run of memory.
//   - Blocks held are those of nodes with held != 0. Holds only grow towards the root, so whatever is not held can be
//     evicted from the leaves, all of it.
//   - No slot stands for two blocks.
// Splitting and joining make or remove the upper node; the lower one stays what and where it was for its children, its
// holds, and the child table. So neither depends on the number of children, and a pointer to a held node stays good.
#pragma once

#include "radix_lru.h"
#include "radix_node.h"
#include "radix_slots.h"
#include "radix_table.h"

#include "mmkey/request.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <unordered_map>
#include <vector>

namespace mmkey::radix {

/// Where a prefix ends: with the first `depth` blocks of `node`. No node where no block matched.
struct Place {
    Node* node = nullptr;
    std::size_t depth = 0;
    std::size_t blocks = 0;  ///< of the whole prefix
};

class Tree {
  public:
    /// `hash_mask` leaves some bits of the short hash, to force collisions in tests.
    Tree(std::uint64_t block_size, std::uint64_t hash_mask);
    Tree(const Tree&) = delete;
    Tree& operator=(const Tree&) = delete;
    ~Tree();

    // These two may run in many threads, as long as none of the others does.
    /// The longest stored prefix of at most `limit` blocks.
    Place find(const Prepared& request, std::size_t limit) const noexcept;
    /// The slots of a prefix, `place.blocks` of them.
    static void read_slots(Place place, std::int64_t* out) noexcept;

    /// The part of a prefix that is its first `blocks`.
    static Place shorten(Place place, std::size_t blocks) noexcept;
    /// How many blocks of a prefix no hold keeps.
    static std::size_t unheld(Place place) noexcept;

    void use(Node& node, std::size_t depth) { lru_.touch(node, depth); }

    /// Takes slots for blocks to come: all or none, as SlotSet::add.
    std::size_t claim(std::span<const std::int64_t> slots) { return slots_.add(slots); }
    void unclaim(std::span<const std::int64_t> slots) noexcept { slots_.remove(slots); }
    /// Stores the request's blocks from `place` on under claimed slots, at least one, and returns the node that ends with
    /// the last. It must be used or held next.
    Node* extend(Place place, const Prepared& request, std::span<const std::int64_t> slots);

    /// Holds a prefix of at least one block. Its blocks stay, and the node is where it ends, until `release`.
    Node* hold(Place place);
    /// Gives back a hold, as a use of its prefix. Throws std::bad_alloc and changes nothing.
    void release(Node* node);

    /// Appends the slots of at most `count` blocks, least recently used first; `freed` has room for them.
    void evict(std::size_t count, std::vector<std::int64_t>& freed) noexcept;
    /// Removes the last block of `place` and all that lies below it, none of it held; slots of deeper blocks come first.
    void remove(Place place, std::vector<std::int64_t>& freed);
    /// Removes everything; nothing is held.
    void clear(std::vector<std::int64_t>& freed);

    std::uint64_t block_size() const noexcept { return block_size_; }
    std::size_t blocks() const noexcept { return blocks_; }
    std::size_t held() const noexcept { return held_; }
    std::size_t holds() const noexcept { return holds_; }
    std::size_t nodes() const noexcept { return nodes_; }
    std::size_t roots() const noexcept { return roots_.size(); }
    std::size_t bytes() const noexcept;
    std::uint64_t collisions() const noexcept { return collisions_.load(std::memory_order_relaxed); }
    /// Changes whenever a Place may have lost its meaning.
    std::uint64_t version() const noexcept { return version_; }

    /// Throws std::logic_error for the first invariant that does not hold. Reads everything.
    void check() const;

  private:
    struct DigestHash {
        std::size_t operator()(const Digest& digest) const noexcept {
            std::size_t hash;
            std::memcpy(&hash, digest.data(), sizeof hash);
            return hash;
        }
    };
    using Roots = std::unordered_map<Digest, Node, DigestHash>;

    struct Child {
        Node* node = nullptr;
        std::size_t same = 0;          ///< its blocks that match, at least 1
        std::uint64_t hash_below = 0;  ///< what to search for below it, if all of its blocks match
    };

    std::uint64_t hash_of(const Node& node) const noexcept {
        return block_hash(node, block_size_, secret_) & hash_mask_;
    }
    std::uint64_t hash_of(const Node* parent, const Query& query) const noexcept {
        return block_hash(parent, query, secret_) & hash_mask_;
    }
    Child find_child(const Node& node, std::uint64_t hash, const Query& query, std::size_t limit) const noexcept;
    Table<Node*>::Entry* entry_of(const Node& node) noexcept;

    Node& root(const Digest& digest);
    void link(Node& parent, Node& node) noexcept;
    static void take_place(Node& node, const Node& of) noexcept;
    Node* edge(Place place);
    Node* split(Node& lower, std::size_t blocks);
    void join(Node& upper);
    void tidy(Node& node) noexcept;
    Node* remove_leaf(Node& leaf) noexcept;
    static std::size_t blocks_below(const Node& top) noexcept;
    void remove_below(Node& top, std::vector<std::int64_t>& freed) noexcept;

    // Parts of `check`.
    struct Sums;
    void check_node(const Node& node, Sums& sums) const;
    void check_uses(const Node& node, Sums& sums) const;
    void check_children(const Node& node) const;
    void check_sums(const Sums& sums) const;

    std::uint64_t block_size_;
    std::uint64_t hash_mask_;
    std::uint64_t secret_;
    Roots roots_;
    Table<Node*> children_;  // of all nodes
    SlotSet slots_;
    Lru lru_;
    std::size_t blocks_ = 0;
    std::size_t held_ = 0;
    std::size_t holds_ = 0;
    std::size_t nodes_ = 0;  // without roots
    std::size_t node_bytes_ = 0;
    std::uint64_t version_ = 0;
    mutable std::atomic<std::uint64_t> collisions_{0};
};

}  // namespace mmkey::radix
