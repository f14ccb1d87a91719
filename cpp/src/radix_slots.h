// The set of slots in use: a bitmap of which only the words that are not 0 exist, in a hash table by their number. Slots
// that lie together, as block numbers do, cost a few bits each.
#pragma once

#include "radix_table.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace mmkey::radix {

class SlotSet {
  public:
    std::size_t bytes() const noexcept { return words_.bytes(); }
    bool contains(std::int64_t slot) const noexcept {
        const auto* entry = words_.find(scramble(word(slot)), any);
        return entry != nullptr && (entry->value & bit(slot)) != 0;
    }
    std::size_t size() const noexcept {
        std::size_t count = 0;
        for (const auto& entry : words_.entries()) count += static_cast<std::size_t>(__builtin_popcountll(entry.value));
        return count;
    }

    /// Adds all, or none and returns the index of the first that is there already or appears twice; else slots.size().
    std::size_t add(std::span<const std::int64_t> slots) {
        std::size_t i = 0;
        try {
            while (i < slots.size()) {
                const Group group = group_at(slots, i);
                auto* entry = words_.find(scramble(word(slots[i])), any);
                const std::uint64_t there = entry != nullptr ? entry->value & group.bits : 0;
                if (there != 0 || group.twice) {
                    std::size_t bad = i;
                    while (bad < group.end && (there & bit(slots[bad])) == 0) ++bad;
                    remove(slots.first(i));
                    return bad;
                }
                if (entry != nullptr) {
                    entry->value |= group.bits;
                } else {
                    words_.insert(scramble(word(slots[i])), group.bits);
                }
                i = group.end;
            }
        } catch (...) {
            remove(slots.first(i));
            throw;
        }
        return i;
    }

    /// Removes slots that are in the set.
    void remove(std::span<const std::int64_t> slots) noexcept {
        for (std::size_t i = 0; i < slots.size();) {
            const Group group = group_at(slots, i);
            auto* entry = words_.find(scramble(word(slots[i])), any);
            entry->value &= ~group.bits;
            if (entry->value == 0) words_.erase(entry);
            i = group.end;
        }
    }

  private:
    /// Slots from one index to `end` that share a word; `twice` where the one at `end` is among them already.
    struct Group {
        std::uint64_t bits;
        std::size_t end;
        bool twice;
    };

    static Group group_at(std::span<const std::int64_t> slots, std::size_t begin) noexcept {
        Group group{0, begin, false};
        for (; group.end < slots.size() && word(slots[group.end]) == word(slots[begin]); ++group.end) {
            group.twice = (group.bits & bit(slots[group.end])) != 0;
            if (group.twice) break;
            group.bits |= bit(slots[group.end]);
        }
        return group;
    }

    static constexpr auto any = [](std::uint64_t) { return true; };
    static std::uint64_t word(std::int64_t slot) noexcept { return static_cast<std::uint64_t>(slot) >> 6; }
    static std::uint64_t bit(std::int64_t slot) noexcept { return std::uint64_t{1} << (slot & 63); }
    /// A bijection, so that equal hashes are equal words.
    static std::uint64_t scramble(std::uint64_t word) noexcept {
        word *= 0x9e3779b97f4a7c15u;
        word ^= word >> 32;
        return word * 0xd6e8feb86659fd93u;
    }

    Table<std::uint64_t> words_;
};

}  // namespace mmkey::radix
