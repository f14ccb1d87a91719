// Every invariant of the trees, verified by counting anew.
#include "radix_tree.h"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

namespace mmkey::radix {

namespace {

void expect(bool holds, const char* invariant) {
    if (!holds) throw std::logic_error(std::string("prefix index is broken: ") + invariant);
}

/// What tells the first blocks of two siblings apart.
using FirstBlock =
    std::pair<std::vector<std::uint32_t>, std::vector<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, Digest>>>;

FirstBlock first_block(const Node& node, std::uint64_t block_size) {
    FirstBlock block;
    block.first.assign(node.tokens.begin(), node.tokens.begin() + static_cast<std::ptrdiff_t>(block_size));
    for (const Media& media : node.media) {
        if (media.start >= block_size) break;
        block.second.emplace_back(media.start, std::min(media.end(), block_size), media.filled, media.place);
    }
    return block;
}

/// The node after this one, parents before children; null after the last.
const Node* following(const Node* node) noexcept {
    if (node->child != nullptr) return node->child;
    while (node->parent != nullptr && node->next == nullptr) node = node->parent;
    return node->parent != nullptr ? node->next : nullptr;
}

}  // namespace

struct Tree::Sums {
    std::size_t blocks = 0;
    std::size_t held = 0;
    std::size_t holds = 0;
    std::size_t nodes = 0;
    std::size_t node_bytes = 0;
    std::size_t uses = 0;
    std::unordered_set<std::int64_t> slots;
};

void Tree::check() const {
    Sums sums;
    for (const auto& [digest, root] : roots_) {
        expect(root.root == &digest && root.parent == nullptr, "a root node knows its tree");
        expect(root.blocks() == 0 && root.tokens.empty() && root.media.empty(), "a root node holds no block");
        expect(root.children != 0, "no tree is empty");
        for (const Node* node = &root; node != nullptr; node = following(node)) {
            check_children(*node);
            check_uses(*node, sums);
            sums.holds += node->holds;
            if (node != &root) check_node(*node, sums);
        }
    }
    check_sums(sums);
}

void Tree::check_node(const Node& node, Sums& sums) const {
    expect(node.blocks() != 0, "a node holds at least one block");
    expect(node.tokens.size() == node.blocks() * block_size_, "a node holds whole blocks");
    std::uint64_t free_from = 0;
    for (const Media& media : node.media) {
        expect(media.start >= free_from && media.length != 0, "media are ascending and disjoint");
        free_from = media.end();
    }
    expect(free_from <= node.tokens.size(), "media lie within their node");
    expect(node.children != 1 || node.holds != 0, "a node with a single child is joined with it unless held");
    expect(node.hash == hash_of(node), "a node's hash is that of its parent and first block");
    const auto* entry = children_.find(node.hash, [&](const Node* candidate) { return candidate == &node; });
    expect(entry != nullptr, "the child table finds every node");
    for (const std::int64_t slot : node.slots) {
        expect(sums.slots.insert(slot).second, "no slot stands for two blocks");
        expect(slots_.contains(slot), "every slot of a block is in use");
    }
    ++sums.nodes;
    sums.blocks += node.blocks();
    sums.node_bytes += node.bytes();
    if (node.held != 0) sums.held += node.blocks();
}

void Tree::check_children(const Node& node) const {
    std::set<FirstBlock> first_blocks;
    std::size_t held = node.holds;
    std::size_t count = 0;
    const Node* previous = nullptr;
    for (const Node* child = node.child; child != nullptr; child = child->next) {
        expect(child->parent == &node && child->previous == previous, "children and siblings link back");
        expect(first_blocks.insert(first_block(*child, block_size_)).second, "siblings begin with different blocks");
        held += child->held;
        ++count;
        previous = child;
    }
    expect(count == node.children, "a node counts its children");
    expect(held == node.held, "a node is held by the holds that end at it or below");
}

void Tree::check_uses(const Node& node, Sums& sums) const {
    expect(node.held == 0 || node.newest == nullptr, "a held node keeps no uses");
    const Use* shallower = nullptr;
    for (const Use* use = node.newest; use != nullptr; use = use->deeper) {
        expect(use->node == &node && use->shallower == shallower, "uses of a node link back");
        expect(use->end != 0 && use->end <= node.blocks(), "a use ends within its node");
        if (shallower != nullptr) {
            expect(use->end > shallower->end && use->time < shallower->time, "deeper uses of a node are older");
        }
        shallower = use;
        ++sums.uses;
    }
    expect(node.oldest == shallower, "a node knows its deepest use");
    if (node.parent != nullptr && node.children == 0 && node.held == 0) {
        expect(node.oldest != nullptr && node.oldest->end == node.blocks(), "a use covers every block not held");
    }
}

void Tree::check_sums(const Sums& sums) const {
    expect(sums.blocks == blocks_, "blocks are counted");
    expect(sums.held == held_ && held_ <= blocks_, "held blocks are counted");
    expect(sums.holds == holds_, "holds are counted");
    expect(sums.nodes == nodes_ && children_.size() == nodes_, "nodes are counted, and the child table knows no other");
    expect(sums.node_bytes == node_bytes_, "bytes are counted");
    expect(slots_.size() == blocks_, "slots in use are those of blocks");
    std::size_t uses = 0;
    const Use* older = nullptr;
    for (const Use* use = lru_.oldest(); use != nullptr; use = use->newer) {
        expect(use->older == older && (older == nullptr || older->time < use->time), "uses are in order of time");
        older = use;
        ++uses;
    }
    expect(uses == sums.uses && uses == lru_.size(), "uses are counted, and each belongs to a node");
}

}  // namespace mmkey::radix
