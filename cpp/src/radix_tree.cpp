#include "radix_tree.h"

#include <algorithm>
#include <memory>
#include <new>
#include <random>
#include <utility>

namespace mmkey::radix {

Tree::Tree(std::uint64_t block_size, std::uint64_t hash_mask) : block_size_(block_size), hash_mask_(hash_mask) {
    std::random_device random;
    secret_ = (static_cast<std::uint64_t>(random()) << 32) | random();
}

Tree::~Tree() {
    while (!roots_.empty()) {
        Node* node = &roots_.begin()->second;
        while (true) {
            while (node->child != nullptr) node = node->child;
            if (node->parent == nullptr) break;
            node = remove_leaf(*node);
        }
        roots_.erase(roots_.begin());
    }
}

std::size_t Tree::bytes() const noexcept {
    constexpr std::size_t links = 2 * sizeof(void*);  // of a node of the standard library's map
    return node_bytes_ + children_.bytes() + slots_.bytes() + lru_.size() * sizeof(Use) +
           roots_.size() * (sizeof(Roots::value_type) + links);
}

// ---- find

Tree::Child Tree::find_child(const Node& node, std::uint64_t hash, const Query& query,
                             std::size_t limit) const noexcept {
    Child child;
    children_.find(hash, [&](Node* candidate) {
        if (candidate->parent == &node) {
            // Most often it matches whole: where to look below it is fetched while it is compared.
            if (candidate->children != 0 && candidate->blocks() < limit) {
                Query below = query;
                below.advance(candidate->blocks());
                child.hash_below = hash_of(candidate, below);
                children_.prefetch(child.hash_below);
            }
            __builtin_prefetch(candidate->slots.data());
            child.same = same_blocks(*candidate, query, limit);
        }
        if (child.same == 0) {
            collisions_.fetch_add(1, std::memory_order_relaxed);
            return false;
        }
        child.node = candidate;
        return true;
    });
    return child;
}

Place Tree::find(const Prepared& request, std::size_t limit) const noexcept {
    Place place;
    const auto tree = roots_.find(request.seed.root);
    if (tree == roots_.end()) return place;
    const Node* node = &tree->second;
    Query query(request, block_size_);
    std::uint64_t hash = limit != 0 ? hash_of(node, query) : 0;
    while (place.blocks < limit) {
        const Child child = find_child(*node, hash, query, limit - place.blocks);
        if (child.node == nullptr) break;
        place = {child.node, child.same, place.blocks + child.same};
        if (child.same < child.node->blocks()) break;
        if (child.node->children == 0) break;
        query.advance(child.same);
        node = child.node;
        hash = child.hash_below;
    }
    return place;
}

void Tree::read_slots(Place place, std::int64_t* out) noexcept {
    std::size_t end = place.blocks;
    std::size_t depth = place.depth;
    for (const Node* node = place.node; end != 0; node = node->parent, depth = node->blocks()) {
        end -= depth;
        std::memcpy(out + end, node->slots.data(), depth * sizeof(std::int64_t));
    }
}

Place Tree::shorten(Place place, std::size_t blocks) noexcept {
    if (blocks == 0) return {};
    while (place.blocks - place.depth >= blocks) {
        place.blocks -= place.depth;
        place.node = place.node->parent;
        place.depth = place.node->blocks();
    }
    place.depth -= place.blocks - blocks;
    place.blocks = blocks;
    return place;
}

std::size_t Tree::unheld(Place place) noexcept {
    std::size_t count = 0;
    std::size_t depth = place.depth;
    for (const Node* node = place.node; depth != 0 && node->held == 0; node = node->parent, depth = node->blocks()) {
        count += depth;
    }
    return count;
}

// ---- shape

Table<Node*>::Entry* Tree::entry_of(const Node& node) noexcept {
    return children_.find(node.hash, [&](const Node* candidate) { return candidate == &node; });
}

Node& Tree::root(const Digest& digest) {
    const auto [tree, fresh] = roots_.try_emplace(digest);
    if (fresh) tree->second.root = &tree->first;
    return tree->second;
}

/// Makes `node` the first child of `parent`.
void Tree::link(Node& parent, Node& node) noexcept {
    node.parent = &parent;
    node.previous = nullptr;
    node.next = parent.child;
    if (node.next != nullptr) node.next->previous = &node;
    parent.child = &node;
    ++parent.children;
}

/// Puts `node` where another is among its siblings.
void Tree::take_place(Node& node, const Node& of) noexcept {
    node.parent = of.parent;
    node.previous = of.previous;
    node.next = of.next;
    (node.previous != nullptr ? node.previous->next : node.parent->child) = &node;
    if (node.next != nullptr) node.next->previous = &node;
}

/// The node that ends where `place` does.
Node* Tree::edge(Place place) {
    return place.depth == place.node->blocks() ? place.node : split(*place.node, place.depth);
}

/// A new node above `lower` takes its first `blocks`.
Node* Tree::split(Node& lower, std::size_t blocks) {
    auto owner = std::make_unique<Node>();
    Node& upper = *owner;
    children_.reserve(1);
    const std::size_t bytes = lower.bytes();
    radix::split(upper, lower, blocks, block_size_);
    node_bytes_ += upper.bytes() + lower.bytes() - bytes;
    owner.release();

    take_place(upper, lower);
    upper.hash = lower.hash;
    upper.held = lower.held;
    entry_of(lower)->value = &upper;
    link(upper, lower);
    lower.hash = hash_of(lower);
    children_.insert(lower.hash, &lower);
    lru_.split(upper, lower, blocks);
    ++nodes_;
    ++version_;
    return &upper;
}

/// The only child of `upper` takes its blocks and its place.
void Tree::join(Node& upper) {
    Node& lower = *upper.child;
    const std::size_t blocks = upper.blocks();
    const std::size_t bytes = upper.bytes() + lower.bytes();
    radix::join(upper, lower, block_size_);
    node_bytes_ += lower.bytes() - bytes;

    lru_.join(upper, lower, blocks);
    children_.erase(entry_of(lower));
    lower.hash = upper.hash;
    entry_of(upper)->value = &lower;
    take_place(lower, upper);
    delete &upper;
    --nodes_;
    ++version_;
}

/// Restores the invariants of a node that lost a child or a hold.
void Tree::tidy(Node& node) noexcept {
    if (node.holds != 0) return;
    if (node.parent == nullptr) {
        if (node.children == 0) roots_.erase(Digest(*node.root));
    } else if (node.children == 1) {
        try {
            join(node);
        } catch (const std::bad_alloc&) {
            // Two nodes serve as well as one.
        }
    }
}

/// Takes a leaf away, with its blocks accounted for already; its newest use goes on in the parent, which it covers.
Node* Tree::remove_leaf(Node& leaf) noexcept {
    Node* parent = leaf.parent;
    children_.erase(entry_of(leaf));
    (leaf.previous != nullptr ? leaf.previous->next : parent->child) = leaf.next;
    if (leaf.next != nullptr) leaf.next->previous = leaf.previous;
    --parent->children;
    while (leaf.oldest != leaf.newest) lru_.drop(leaf.oldest);
    if (leaf.newest != nullptr) lru_.move_up(leaf.newest, *parent);
    node_bytes_ -= leaf.bytes();
    delete &leaf;
    --nodes_;
    ++version_;
    return parent;
}

// ---- change

Node* Tree::extend(Place place, const Prepared& request, std::span<const std::int64_t> slots) {
    Node* base = place.node != nullptr ? edge(place) : &root(request.seed.root);
    Query query(request, block_size_);
    query.advance(place.blocks);
    ++version_;
    if (base->parent != nullptr && base->children == 0 && base->holds == 0) {
        const std::size_t bytes = base->bytes();
        append(*base, query, slots);
        node_bytes_ += base->bytes() - bytes;
        blocks_ += slots.size();
        return base;
    }
    try {
        auto node = std::make_unique<Node>();
        append(*node, query, slots);
        node->hash = hash_of(base, query);
        children_.insert(node->hash, node.get());
        link(*base, *node);
        node_bytes_ += node->bytes();
        blocks_ += slots.size();
        ++nodes_;
        return node.release();
    } catch (...) {
        tidy(*base);
        throw;
    }
}

Node* Tree::hold(Place place) {
    Node* end = edge(place);
    ++end->holds;
    ++holds_;
    for (Node* node = end; node != nullptr; node = node->parent) {
        if (node->held++ != 0) continue;
        held_ += node->blocks();
        lru_.clear(*node);
    }
    return end;
}

void Tree::release(Node* end) {
    auto use = std::make_unique<Use>();
    --end->holds;
    --holds_;
    for (Node* node = end; node != nullptr; node = node->parent) {
        if (--node->held == 0) held_ -= node->blocks();
    }
    lru_.touch(*end, end->blocks(), std::move(use));
    tidy(*end);
}

void Tree::evict(std::size_t count, std::vector<std::int64_t>& freed) noexcept {
    while (count != 0 && lru_.oldest() != nullptr) {
        Use* use = lru_.oldest();
        Node& node = *use->node;
        if (node.children != 0) {  // covered by a later use further down
            lru_.drop(use);
            continue;
        }
        const std::size_t floor = use->shallower != nullptr ? use->shallower->end : 0;
        const std::size_t keep = node.blocks() - std::min(count, node.blocks() - floor);
        const std::span<const std::int64_t> gone = std::span(node.slots).subspan(keep);
        freed.insert(freed.end(), gone.rbegin(), gone.rend());
        slots_.remove(gone);
        count -= gone.size();
        blocks_ -= gone.size();
        if (keep == 0) {
            tidy(*remove_leaf(node));
            continue;
        }
        const std::size_t bytes = node.bytes();
        truncate(node, keep, block_size_);
        node_bytes_ += node.bytes() - bytes;
        ++version_;
        if (keep == floor) {
            lru_.drop(use);
        } else {
            use->end = keep;
        }
    }
}

void Tree::remove(Place place, std::vector<std::int64_t>& freed) {
    freed.reserve(freed.size() + blocks_below(*place.node));
    if (place.depth > 1) split(*place.node, place.depth - 1);
    remove_below(*place.node, freed);
}

/// The blocks of `top` and of all below it.
std::size_t Tree::blocks_below(const Node& top) noexcept {
    std::size_t count = top.blocks();
    const Node* node = &top;
    while (true) {
        if (node->child != nullptr) {
            node = node->child;
        } else {
            while (node != &top && node->next == nullptr) node = node->parent;
            if (node == &top) return count;
            node = node->next;
        }
        count += node->blocks();
    }
}

/// Removes `top` and all below it, leaves first; `freed` has room.
void Tree::remove_below(Node& top, std::vector<std::int64_t>& freed) noexcept {
    Node* const above = top.parent;
    Node* node = &top;
    while (node != above) {
        while (node->child != nullptr) node = node->child;
        freed.insert(freed.end(), node->slots.rbegin(), node->slots.rend());
        slots_.remove(node->slots);
        blocks_ -= node->blocks();
        node = remove_leaf(*node);
    }
    tidy(*above);
}

void Tree::clear(std::vector<std::int64_t>& freed) {
    freed.reserve(freed.size() + blocks_);
    while (!roots_.empty()) remove_below(*roots_.begin()->second.child, freed);
}

}  // namespace mmkey::radix
