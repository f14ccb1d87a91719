// A hash table of (hash, value) entries: open addressing, linear probing, no tombstones.
//
// The hash only finds candidates: `find` asks its caller which entry is meant, so equal hashes are no trouble beyond a
// question more. It serves the index twice: for the children of all nodes, and for the set of slots in use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

namespace mmkey::radix {

/// `T{}` marks a free entry, so it is never a value.
template <class T>
class Table {
  public:
    struct Entry {
        std::uint64_t hash = 0;
        T value{};
    };

    std::size_t size() const noexcept { return size_; }
    std::size_t bytes() const noexcept { return entries_.capacity() * sizeof(Entry); }
    const std::vector<Entry>& entries() const noexcept { return entries_; }

    /// The first entry under `hash` that `meant(value)` accepts, or null. Valid until the next insert or erase.
    template <class Meant>
    Entry* find(std::uint64_t hash, Meant&& meant) noexcept {
        return const_cast<Entry*>(std::as_const(*this).find(hash, meant));
    }
    template <class Meant>
    const Entry* find(std::uint64_t hash, Meant&& meant) const noexcept {
        if (size_ == 0) return nullptr;
        for (std::size_t i = home(hash); entries_[i].value != T{}; i = next(i)) {
            if (entries_[i].hash == hash && meant(entries_[i].value)) return &entries_[i];
        }
        return nullptr;
    }

    /// Starts to fetch where a search for `hash` begins.
    void prefetch(std::uint64_t hash) const noexcept {
        if (size_ != 0) __builtin_prefetch(&entries_[home(hash)]);
    }

    /// Room for `extra` more entries, after which as many inserts cannot fail.
    void reserve(std::size_t extra) {
        std::size_t capacity = entries_.empty() ? smallest : entries_.size();
        while ((size_ + extra) * 4 > capacity * 3) capacity *= 2;
        if (capacity != entries_.size()) rehash(capacity);
    }

    Entry* insert(std::uint64_t hash, T value) {
        reserve(1);
        ++size_;
        return place({hash, value});
    }

    /// Closes the gap by moving back every entry of the cluster that may stand nearer to its home.
    void erase(Entry* entry) noexcept {
        auto gap = static_cast<std::size_t>(entry - entries_.data());
        for (std::size_t i = next(gap); entries_[i].value != T{}; i = next(i)) {
            const std::size_t from_home = (i - home(entries_[i].hash)) & (entries_.size() - 1);
            const std::size_t from_gap = (i - gap) & (entries_.size() - 1);
            if (from_home < from_gap) continue;
            entries_[gap] = entries_[i];
            gap = i;
        }
        entries_[gap] = {};
        --size_;
        if (entries_.size() > smallest && size_ * 8 < entries_.size()) shrink();
    }

  private:
    static constexpr std::size_t smallest = 16;  // entries; always a power of two

    std::size_t home(std::uint64_t hash) const noexcept { return hash & (entries_.size() - 1); }
    std::size_t next(std::size_t i) const noexcept { return (i + 1) & (entries_.size() - 1); }

    Entry* place(Entry entry) noexcept {
        std::size_t i = home(entry.hash);
        while (entries_[i].value != T{}) i = next(i);
        entries_[i] = entry;
        return &entries_[i];
    }

    void rehash(std::size_t capacity) {
        std::vector<Entry> old(capacity);
        old.swap(entries_);
        for (const Entry& entry : old) {
            if (entry.value != T{}) place(entry);
        }
    }

    void shrink() noexcept {
        try {
            rehash(entries_.size() / 2);
        } catch (const std::bad_alloc&) {
            // The larger table serves as well.
        }
    }

    std::vector<Entry> entries_;
    std::size_t size_ = 0;
};

}  // namespace mmkey::radix
