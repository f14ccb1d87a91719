#include "mmkey/radix_events.h"

#include "mmkey/block_chain.h"

#include <utility>

namespace mmkey {

void EventLog::stored(const Prepared& prepared, std::size_t first, std::span<const std::int64_t> slots) {
    Note note{{slots.begin(), slots.end()}, prepared, first, true};
    const std::lock_guard lock(noting_);
    notes_.push_back(std::move(note));
}

void EventLog::removed(std::span<const std::int64_t> slots) {
    Note note{{slots.begin(), slots.end()}, {}, 0, false};
    const std::lock_guard lock(noting_);
    notes_.push_back(std::move(note));
}

std::vector<BlockEvent> EventLog::drain() {
    const std::lock_guard drain_lock(draining_);
    std::vector<Note> notes;
    {
        const std::lock_guard lock(noting_);
        notes.swap(notes_);
    }
    std::vector<BlockEvent> events;
    events.reserve(notes.size());
    for (const Note& note : notes) events.push_back(read(note));
    return events;
}

BlockEvent EventLog::read(const Note& note) {
    BlockEvent event;
    event.slots = note.slots;
    if (!note.stored) {
        event.kind = BlockEvent::Kind::removed;
        for (const std::int64_t slot : note.slots) {
            const auto entry = keys_.find(slot);
            event.keys.push_back(entry->second);
            keys_.erase(entry);
        }
        return event;
    }
    std::vector<Digest> keys(note.first + note.slots.size());
    block_keys(note.prepared, keys);
    const auto first = keys.begin() + static_cast<std::ptrdiff_t>(note.first);
    event.keys.assign(first, keys.end());
    event.parent = note.first == 0 ? note.prepared.seed.root : keys[note.first - 1];
    event.token_ids = note.prepared.token_ids;
    event.block_size = note.prepared.seed.block_size;
    event.first_token = note.first * event.block_size;
    for (std::size_t i = 0; i < note.slots.size(); ++i) keys_[note.slots[i]] = event.keys[i];
    return event;
}

}  // namespace mmkey
