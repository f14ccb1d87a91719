// Least recently used, exact to the block, at O(1) a use and O(1) a block evicted.
//
// A use covers a prefix: all blocks from the root down to some block of some node. A block's last use is the newest that
// covers it, so along a path last uses only get older downwards, and the next block to evict is the deepest of the oldest
// use. It is enough to keep each use at the block where it ends:
//
//   - The list of all uses is in order of time, oldest first; a new use goes to its end.
//   - Within a node, deeper uses are older: a new use drops those of its node that end no deeper than it does.
//   - Uses further up the path are covered too, but left where they are. A use that comes up as the oldest in a node with
//     children is one of those, since all below it was used later; it is dropped then.
//   - When the oldest use has given up its last block in a node, it goes on in the parent.
//
// A held block is in use until it is released, and its release is a use. So a held node keeps no uses at all, and a leaf
// that is not held always has one that ends with its last block.
#pragma once

#include "radix_node.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace mmkey::radix {

struct Use {
    Use* older = nullptr;  ///< in time, over all nodes
    Use* newer = nullptr;
    Use* shallower = nullptr;  ///< in its node: newer, and ending before this one
    Use* deeper = nullptr;
    Node* node = nullptr;
    std::size_t end = 0;  ///< blocks of `node` that it covers, at least 1
    std::uint64_t time = 0;
};

class Lru {
  public:
    Lru() = default;
    Lru(const Lru&) = delete;
    Lru& operator=(const Lru&) = delete;
    ~Lru() {
        while (oldest_ != nullptr) drop(oldest_);
    }

    Use* oldest() const noexcept { return oldest_; }
    std::size_t size() const noexcept { return size_; }

    /// The prefix that ends with the first `end` blocks of `node` is used now. Nothing where the node is held.
    void touch(Node& node, std::size_t end) { touch(node, end, std::make_unique<Use>()); }
    void touch(Node& node, std::size_t end, std::unique_ptr<Use> made) noexcept;
    void drop(Use* use) noexcept;
    /// The node is held from now on, or gone.
    void clear(Node& node) noexcept {
        while (node.newest != nullptr) drop(node.newest);
    }
    /// A use from further down goes on in `node`, which it covers whole.
    void move_up(Use* use, Node& node) noexcept;
    /// `upper` took the first `blocks` of `lower`.
    void split(Node& upper, Node& lower, std::size_t blocks) noexcept;
    /// `lower` is to take the `blocks` of `upper`.
    void join(Node& upper, Node& lower, std::size_t blocks) noexcept;

  private:
    void leave_node(Use* use) noexcept;
    void enter_shallow(Use* use, Node& node) noexcept;
    void enter_deep(Use* use, Node& node) noexcept;

    Use* oldest_ = nullptr;
    Use* newest_ = nullptr;
    std::size_t size_ = 0;
    std::uint64_t now_ = 0;
};

}  // namespace mmkey::radix
