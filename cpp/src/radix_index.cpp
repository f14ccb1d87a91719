#include "mmkey/radix_index.h"

#include "radix_lock.h"
#include "radix_tree.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <string>
#include <vector>

namespace mmkey {

using radix::Place;

/// The trees, and what makes them safe under threads.
///
/// A match changes nothing but when its blocks were last used. It notes that in `touches`, in the order in which matches
/// begin, under the lock that it shares with other matches; whoever takes the lock alone first plays the notes to the
/// trees. So a note always names a node that still is what it was.
struct RadixIndex::Impl {
    explicit Impl(const Options& given) : options(given), tree(given.block_size, given.hash_mask) {}

    struct Touch {
        radix::Node* node = nullptr;
        std::size_t depth = 0;
    };

    /// Holds the lock alone, with all touches played.
    struct Alone {
        explicit Alone(Impl& impl) : lock(impl.lock) { impl.play_touches(); }
        std::unique_lock<radix::SharedLock> lock;
    };

    void check_request(const Prepared& prepared) const;
    Place locate(const Prepared& prepared, std::uint64_t limit, bool whole_items) const;
    void check_slots(const Prepared& prepared, std::span<const std::int64_t> slots) const;
    void claim(std::span<const std::int64_t> slots, std::size_t first);
    std::size_t excess(const Place& place, std::size_t fresh) const;
    void check_none_held() const;
    void play_touches();

    const Options options;
    mutable radix::SharedLock lock;
    radix::Tree tree;
    std::array<Touch, 1024> touches;
    alignas(64) std::atomic<std::size_t> touched{0};
};

namespace {

/// The most blocks, of the first `blocks`, that end inside no item.
std::size_t whole_item_blocks(const Prepared& prepared, std::size_t blocks) {
    const std::uint64_t block_size = prepared.seed.block_size;
    std::vector<Range> extents(prepared.identities.places.size(), Range{0, 0});
    for (const Span& span : prepared.normal.spans) {
        Range& extent = extents[span.item];
        if (extent.length == 0) extent.offset = span.offset;
        extent.length = span.end() - extent.offset;
    }
    // Items are numbered by first appearance: an end moved before one lies inside none that begins after it.
    std::uint64_t end = blocks * block_size;
    for (auto extent = extents.rbegin(); extent != extents.rend(); ++extent) {
        if (extent->offset < end && end < extent->end()) end = extent->offset - extent->offset % block_size;
    }
    return end / block_size;
}

std::string number(std::uint64_t value) { return std::to_string(value); }

}  // namespace

void RadixIndex::Impl::check_request(const Prepared& prepared) const {
    if (prepared.seed.block_size != options.block_size) {
        throw InvalidRequest("block_size", number(prepared.seed.block_size) +
                                               " tokens a block, as the request was "
                                               "prepared, where the index has " +
                                               number(options.block_size));
    }
    if (!prepared.has_blocks) {
        throw InvalidRequest("layout", "not known, so the request's media stand in no block");
    }
}

Place RadixIndex::Impl::locate(const Prepared& prepared, std::uint64_t limit, bool whole_items) const {
    const Place place =
        tree.find(prepared, std::min<std::uint64_t>(prepared.full_blocks(), limit / options.block_size));
    if (!whole_items || prepared.normal.spans.empty()) return place;
    return radix::Tree::shorten(place, whole_item_blocks(prepared, place.blocks));
}

void RadixIndex::Impl::check_slots(const Prepared& prepared, std::span<const std::int64_t> slots) const {
    if (slots.size() != prepared.full_blocks()) {
        throw InvalidRequest("slots", number(slots.size()) + " given, where the request has " +
                                          number(prepared.full_blocks()) + " full blocks");
    }
    const auto bad = std::find_if(slots.begin(), slots.end(), [](std::int64_t slot) { return slot < 0; });
    if (bad != slots.end()) {
        throw InvalidRequest("slots[" + std::to_string(bad - slots.begin()) + "]",
                             std::to_string(*bad) + " is not a block number, at least 0");
    }
}

/// Takes the slots from `first` on, for blocks to come.
void RadixIndex::Impl::claim(std::span<const std::int64_t> slots, std::size_t first) {
    const std::size_t bad = first + tree.claim(slots.subspan(first));
    if (bad == slots.size()) return;
    throw InvalidRequest("slots[" + number(bad) + "]", std::to_string(slots[bad]) + " is the slot of another block");
}

/// How many blocks must go so that `fresh` more can follow `place`.
std::size_t RadixIndex::Impl::excess(const Place& place, std::size_t fresh) const {
    if (!options.capacity || tree.blocks() + fresh <= *options.capacity) return 0;
    const std::size_t count = tree.blocks() + fresh - *options.capacity;
    const std::size_t evictable = tree.blocks() - tree.held() - radix::Tree::unheld(place);
    if (count <= evictable) return count;
    throw CapacityError("no room for " + number(fresh) + " blocks: of a capacity of " + number(*options.capacity) +
                        ", " + number(tree.blocks()) + " are stored and " + number(evictable) +
                        " can be evicted, being neither held nor of this request");
}

void RadixIndex::Impl::check_none_held() const {
    if (tree.held() == 0) return;
    throw HoldError(number(tree.held()) + " blocks are held: release them first");
}

void RadixIndex::Impl::play_touches() {
    const std::size_t count = std::min(touched.load(), touches.size());
    for (const Touch& touch : std::span(touches).first(count)) {
        if (touch.node != nullptr) tree.use(*touch.node, touch.depth);
    }
    touched.store(0);
}

RadixIndex::RadixIndex(const Options& options) {
    if (options.block_size == 0) throw InvalidRequest("block_size", "0 is not a number of tokens, at least 1");
    if (options.capacity == std::uint64_t{0})
        throw InvalidRequest("capacity", "0 is not a number of blocks, at least 1");
    impl_ = std::make_unique<Impl>(options);
}

RadixIndex::~RadixIndex() = default;

RadixIndex::Match RadixIndex::match(const Prepared& prepared, std::uint64_t limit, bool hold, bool whole_items) {
    impl_->check_request(prepared);
    Match match;
    const auto take = [&](const Place& place) {
        match.blocks = place.blocks;
        match.data = std::make_unique_for_overwrite<std::int64_t[]>(place.blocks);
        radix::Tree::read_slots(place, match.data.get());
    };
    if (hold) {
        // The search is shared. Only if the trees change before the lock is had alone is it made again.
        std::shared_lock shared(impl_->lock);
        Place place = impl_->locate(prepared, limit, whole_items);
        const std::uint64_t version = impl_->tree.version();
        shared.unlock();
        const Impl::Alone alone(*impl_);
        if (impl_->tree.version() != version) place = impl_->locate(prepared, limit, whole_items);
        take(place);
        match.hold = Hold(this, place.node != nullptr ? impl_->tree.hold(place) : nullptr);
        return match;
    }
    while (true) {
        std::shared_lock shared(impl_->lock);
        const std::size_t ticket = impl_->touched.fetch_add(1);
        if (ticket < impl_->touches.size()) {
            Impl::Touch& touch = impl_->touches[ticket];
            touch.node = nullptr;
            const Place place = impl_->locate(prepared, limit, whole_items);
            take(place);
            touch = {place.node, place.depth};
            return match;
        }
        shared.unlock();
        const Impl::Alone played(*impl_);
    }
}

RadixIndex::Inserted RadixIndex::insert(const Prepared& prepared, std::span<const std::int64_t> slots, bool hold) {
    impl_->check_request(prepared);
    impl_->check_slots(prepared, slots);
    Inserted inserted;
    const Impl::Alone alone(*impl_);
    radix::Tree& tree = impl_->tree;

    const Place place = tree.find(prepared, slots.size());
    const auto fresh = slots.subspan(place.blocks);
    const std::size_t excess = impl_->excess(place, fresh.size());
    std::vector<std::int64_t> there(place.blocks);
    radix::Tree::read_slots(place, there.data());
    for (std::size_t i = 0; i < place.blocks; ++i) {
        if (there[i] != slots[i]) inserted.duplicates.push_back(slots[i]);
    }
    inserted.evicted.reserve(excess);

    Place end = place;
    if (!fresh.empty()) {
        impl_->claim(slots, place.blocks);
        try {
            radix::Node* node = tree.extend(place, prepared, fresh);
            end = {node, node->blocks(), slots.size()};
        } catch (...) {
            tree.unclaim(fresh);
            throw;
        }
    }
    inserted.stored = fresh.size();
    if (end.node == nullptr) {
        if (hold) inserted.hold = Hold(this, nullptr);
        return inserted;
    }
    if (hold || excess != 0) {
        radix::Node* held = tree.hold(end);  // what is inserted must not be what is evicted
        tree.evict(excess, inserted.evicted);
        if (hold) {
            inserted.hold = Hold(this, held);
        } else {
            tree.release(held);
        }
    } else {
        tree.use(*end.node, end.depth);
    }
    if (IndexListener* listener = impl_->options.listener) {
        if (!inserted.evicted.empty()) listener->removed(inserted.evicted);
        if (!fresh.empty()) listener->stored(prepared, place.blocks, fresh);
    }
    return inserted;
}

RadixIndex::Hold RadixIndex::hold(const Prepared& prepared, std::span<const std::int64_t> slots) {
    impl_->check_request(prepared);
    const Impl::Alone alone(*impl_);
    const Place place = impl_->tree.find(prepared, slots.size());
    std::vector<std::int64_t> there(place.blocks);
    radix::Tree::read_slots(place, there.data());
    if (!std::ranges::equal(there, slots)) {
        throw HoldError("the match is stale: not all of its " + number(slots.size()) +
                        " blocks are in their slots any more");
    }
    return Hold(this, place.node != nullptr ? impl_->tree.hold(place) : nullptr);
}

void RadixIndex::release(Hold& hold) {
    if (hold.end_ != nullptr) {
        const Impl::Alone alone(*impl_);
        impl_->tree.release(hold.end_);
    }
    hold.index_ = nullptr;
}

std::vector<std::int64_t> RadixIndex::evict(std::uint64_t blocks) {
    const Impl::Alone alone(*impl_);
    const std::size_t count = std::min<std::uint64_t>(blocks, impl_->tree.blocks() - impl_->tree.held());
    std::vector<std::int64_t> freed;
    freed.reserve(count);
    impl_->tree.evict(count, freed);
    if (impl_->options.listener != nullptr && !freed.empty()) impl_->options.listener->removed(freed);
    return freed;
}

std::vector<std::int64_t> RadixIndex::remove(const Prepared& prepared, std::uint64_t from_block) {
    impl_->check_request(prepared);
    std::vector<std::int64_t> freed;
    if (from_block >= prepared.full_blocks()) return freed;
    const Impl::Alone alone(*impl_);
    const Place place = impl_->tree.find(prepared, from_block + 1);
    if (place.blocks <= from_block) return freed;
    if (place.node->held != 0) {
        throw HoldError("block " + number(from_block) + " of the request is held: release it first");
    }
    impl_->tree.remove(place, freed);
    if (impl_->options.listener != nullptr) impl_->options.listener->removed(freed);
    return freed;
}

std::vector<std::int64_t> RadixIndex::clear() {
    const Impl::Alone alone(*impl_);
    impl_->check_none_held();
    std::vector<std::int64_t> freed;
    impl_->tree.clear(freed);
    if (impl_->options.listener != nullptr && !freed.empty()) impl_->options.listener->removed(freed);
    return freed;
}

std::size_t RadixIndex::size() const {
    const std::shared_lock shared(impl_->lock);
    return impl_->tree.blocks();
}

RadixIndex::Stats RadixIndex::stats() const {
    const std::shared_lock shared(impl_->lock);
    const radix::Tree& tree = impl_->tree;
    Stats stats;
    stats.block_size = impl_->options.block_size;
    stats.capacity = impl_->options.capacity;
    stats.blocks = tree.blocks();
    stats.held = tree.held();
    stats.evictable = tree.blocks() - tree.held();
    stats.holds = tree.holds();
    stats.nodes = tree.nodes();
    stats.roots = tree.roots();
    stats.bytes = tree.bytes();
    stats.collisions = tree.collisions();
    return stats;
}

void RadixIndex::check() const {
    const Impl::Alone alone(*impl_);
    impl_->tree.check();
}

RadixIndex::Hold::~Hold() {
    if (index_ == nullptr) return;
    try {
        index_->release(*this);
    } catch (const std::bad_alloc&) {
        // The blocks stay held, which is safe.
    }
}

void RadixIndex::Hold::release() {
    if (index_ == nullptr) throw HoldError("there is nothing to release: no hold was taken, or it was released before");
    index_->release(*this);
}

}  // namespace mmkey
