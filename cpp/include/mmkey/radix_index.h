// The prefix index: which leading blocks of a request are cached, and in which slots.
//
// What a block is known by is what its key is made of: its token ids and, for each range of an item that overlaps it, the
// item's place, where the range starts in the block, how many positions of the item came before, and how many lie in the
// block; after equal blocks, under an equal root. The index holds these contents and compares them. A hash only says
// where to look, so no collision makes a hit.
//
// Last use, and what is evicted. Match, insert and the release of a hold use the blocks they return, store or held; a
// block in use by a hold is never evicted. Of the blocks that no other block follows and no hold keeps, `evict` takes
// the one whose last use is longest ago, and again. So a prefix outlives what follows it, and all that is not held can be
// evicted.
//
// Threads. Every function of one index may run in any number of threads at once. Matches run side by side; what changes
// the index runs alone, and waits for no stream of matches to end.
#pragma once

#include "mmkey/bytes.h"
#include "mmkey/error.h"
#include "mmkey/request.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace mmkey {

namespace radix {
struct Node;
}

/// Told of every change, in order, by the thread that makes it and while the index is locked: it must not call the index.
class IndexListener {
  public:
    virtual ~IndexListener() = default;
    /// Blocks [first, first + slots.size()) of `prepared` are stored in `slots`.
    virtual void stored(const Prepared& prepared, std::size_t first, std::span<const std::int64_t> slots) = 0;
    /// The blocks in `slots` are gone; of two of one prompt the later comes first.
    virtual void removed(std::span<const std::int64_t> slots) = 0;
};

class RadixIndex {
  public:
    struct Options {
        std::uint64_t block_size = 16;          ///< tokens, at least 1
        std::optional<std::uint64_t> capacity;  ///< most blocks stored, at least 1
        IndexListener* listener = nullptr;      ///< outlives the index
        std::uint64_t hash_mask =
            ~std::uint64_t{0};  ///< bits kept of the short hash: fewer force collisions, for tests
    };

    /// Keeps a prefix stored until it is released, by `release` or at the end of its life. Outlived by the index.
    class Hold {
      public:
        Hold() = default;
        Hold(Hold&& other) noexcept { swap(other); }
        Hold& operator=(Hold&& other) noexcept {
            Hold(std::move(other)).swap(*this);
            return *this;
        }
        ~Hold();

        explicit operator bool() const noexcept { return index_ != nullptr; }
        /// Throws HoldError where there is nothing to release, as after a release.
        void release();
        /// Forgets the hold: its blocks stay for as long as the index lives.
        void detach() noexcept { index_ = nullptr; }

      private:
        friend RadixIndex;
        Hold(RadixIndex* index, radix::Node* end) noexcept : index_(index), end_(end) {}
        void swap(Hold& other) noexcept {
            std::swap(index_, other.index_);
            std::swap(end_, other.end_);
        }

        RadixIndex* index_ = nullptr;
        radix::Node* end_ = nullptr;  // null: a hold of no block
    };

    struct Match {
        std::size_t blocks = 0;                ///< leading blocks of the request that are stored
        std::unique_ptr<std::int64_t[]> data;  ///< their slots
        Hold hold;                             ///< where one was asked for

        std::span<const std::int64_t> slots() const noexcept { return {data.get(), blocks}; }
    };

    struct Inserted {
        std::size_t stored = 0;                ///< blocks that were not there before
        std::vector<std::int64_t> duplicates;  ///< slots given for blocks that another slot holds already
        std::vector<std::int64_t> evicted;     ///< slots freed to stay within capacity, oldest first
        Hold hold;
    };

    struct Stats {
        std::uint64_t block_size = 0;
        std::optional<std::uint64_t> capacity;
        std::size_t blocks = 0;        ///< stored: held + evictable
        std::size_t held = 0;          ///< blocks that a hold keeps
        std::size_t evictable = 0;     ///< blocks that `evict` would free
        std::size_t holds = 0;         ///< holds of at least one block, not released
        std::size_t nodes = 0;         ///< runs of blocks in which no prompt parts from another
        std::size_t roots = 0;         ///< trees: engines (model, adapter, salt, ...) with blocks stored
        std::size_t bytes = 0;         ///< asked of the allocator
        std::uint64_t collisions = 0;  ///< compares that an equal short hash cost and that found another block
    };

    static constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();

    /// Throws InvalidRequest (`block_size`, `capacity`).
    explicit RadixIndex(const Options& options);
    ~RadixIndex();
    RadixIndex(const RadixIndex&) = delete;
    RadixIndex& operator=(const RadixIndex&) = delete;

    // All that take a request throw InvalidRequest where it was prepared for another block size (`block_size`), or has
    // media and no layout (`layout`).

    /// The longest stored prefix of at most `limit` tokens, in whole blocks. `whole_items`: where that would end inside an
    /// item, anywhere between its first and its last position, it ends before the block in which the item begins. `hold`
    /// takes a hold in the same step: nothing can be evicted in between.
    Match match(const Prepared& prepared, std::uint64_t limit = no_limit, bool hold = false, bool whole_items = false);

    /// Stores the full blocks of a request. `slots`: one for each, at least 0, and where a block is not stored yet, one
    /// that no other block is stored in. A block that is stored stays in its slot. Above capacity, evicts first, but
    /// nothing of this request.
    /// Throws InvalidRequest (`slots`, `slots[i]`), or CapacityError where what is held leaves no room; nothing changes.
    Inserted insert(const Prepared& prepared, std::span<const std::int64_t> slots, bool hold = false);

    /// Holds the first slots.size() blocks, matched earlier. Throws HoldError where one of them is no longer in its slot.
    Hold hold(const Prepared& prepared, std::span<const std::int64_t> slots);

    /// Frees `blocks` blocks, or as many as are not held: their slots, least recently used first.
    std::vector<std::int64_t> evict(std::uint64_t blocks);
    /// Removes block `from_block` of a request and whatever follows it in any prompt, since without it that could not be
    /// reached: the slots freed. Throws HoldError where one of them is held; nothing changes.
    std::vector<std::int64_t> remove(const Prepared& prepared, std::uint64_t from_block = 0);
    /// Removes all blocks of all roots: the slots freed. Throws HoldError where one is held; nothing changes.
    std::vector<std::int64_t> clear();

    /// Blocks stored.
    std::size_t size() const;
    Stats stats() const;
    /// Verifies every invariant by counting anew, in time proportional to all that is stored: links, sizes, order of last
    /// use, accounting, one block a slot. Throws std::logic_error naming the first that is broken.
    void check() const;

  private:
    struct Impl;
    void release(Hold& hold);

    std::unique_ptr<Impl> impl_;
};

}  // namespace mmkey
