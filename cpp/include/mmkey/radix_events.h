// What a prefix index stored and removed, by key: for those who follow it from elsewhere, such as a router.
//
// The index itself knows no keys. A log that is given to it as its listener takes notes, cheaply, under the index's lock;
// keys are computed when the notes are drained, on the thread that drains.
#pragma once

#include "mmkey/bytes.h"
#include "mmkey/radix_index.h"
#include "mmkey/request.h"

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

namespace mmkey {

/// Consecutive blocks of one prompt that were stored, or blocks that were removed.
struct BlockEvent {
    enum class Kind : std::uint8_t { stored, removed };

    Kind kind = Kind::stored;
    std::vector<Digest> keys;         ///< one a block
    std::vector<std::int64_t> slots;  ///< one a block
    Digest parent{};                  ///< stored: the key of the block before the first, or the root
    TokenIds token_ids;               ///< stored: of the whole request
    std::size_t first_token = 0;      ///< stored: where the blocks begin in it
    std::uint64_t block_size = 0;     ///< stored: tokens a block

    /// Stored: the blocks' token ids, keys.size() * block_size of them.
    std::span<const std::uint32_t> tokens() const noexcept {
        return token_ids.span().subspan(first_token, keys.size() * block_size);
    }
};

/// Any number of threads may use one at once. It remembers the key of every block stored, and every event that has not
/// been drained: whoever switches events on must drain them.
class EventLog final : public IndexListener {
  public:
    void stored(const Prepared& prepared, std::size_t first, std::span<const std::int64_t> slots) override;
    void removed(std::span<const std::int64_t> slots) override;

    /// All events since the last drain, in the order in which they happened.
    std::vector<BlockEvent> drain();

  private:
    struct Note {
        std::vector<std::int64_t> slots;
        Prepared prepared;      // of blocks stored
        std::size_t first = 0;  // of them
        bool stored = false;
    };

    BlockEvent read(const Note& note);

    std::mutex noting_;
    std::vector<Note> notes_;
    std::mutex draining_;                            // taken before `noting_`
    std::unordered_map<std::int64_t, Digest> keys_;  // of stored blocks, by slot, as of the last note read
};

}  // namespace mmkey
