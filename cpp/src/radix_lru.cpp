#include "radix_lru.h"

namespace mmkey::radix {

void Lru::touch(Node& node, std::size_t end, std::unique_ptr<Use> made) noexcept {
    if (node.held != 0) return;
    while (node.newest != nullptr && node.newest->end <= end) drop(node.newest);
    Use* use = made.release();
    use->end = end;
    use->time = ++now_;
    use->older = newest_;
    (newest_ != nullptr ? newest_->newer : oldest_) = use;
    newest_ = use;
    ++size_;
    enter_shallow(use, node);
}

void Lru::drop(Use* use) noexcept {
    leave_node(use);
    (use->older != nullptr ? use->older->newer : oldest_) = use->newer;
    (use->newer != nullptr ? use->newer->older : newest_) = use->older;
    --size_;
    delete use;
}

void Lru::move_up(Use* use, Node& node) noexcept {
    while (node.oldest != nullptr && node.oldest->time < use->time) drop(node.oldest);
    const bool covered = node.oldest != nullptr && node.oldest->end == node.blocks();
    if (node.held != 0 || node.blocks() == 0 || covered) {
        drop(use);
        return;
    }
    leave_node(use);
    use->end = node.blocks();
    enter_deep(use, node);
}

void Lru::split(Node& upper, Node& lower, std::size_t blocks) noexcept {
    while (lower.newest != nullptr && lower.newest->end <= blocks) {
        Use* use = lower.newest;
        leave_node(use);
        enter_deep(use, upper);
    }
    for (Use* use = lower.newest; use != nullptr; use = use->deeper) use->end -= blocks;
}

void Lru::join(Node& upper, Node& lower, std::size_t blocks) noexcept {
    while (upper.oldest != nullptr && lower.newest != nullptr && upper.oldest->time < lower.newest->time) {
        drop(upper.oldest);
    }
    for (Use* use = lower.newest; use != nullptr; use = use->deeper) use->end += blocks;
    while (upper.oldest != nullptr) {
        Use* use = upper.oldest;
        leave_node(use);
        enter_shallow(use, lower);
    }
}

void Lru::leave_node(Use* use) noexcept {
    (use->shallower != nullptr ? use->shallower->deeper : use->node->newest) = use->deeper;
    (use->deeper != nullptr ? use->deeper->shallower : use->node->oldest) = use->shallower;
    use->shallower = use->deeper = nullptr;
}

void Lru::enter_shallow(Use* use, Node& node) noexcept {
    use->node = &node;
    use->deeper = node.newest;
    (node.newest != nullptr ? node.newest->shallower : node.oldest) = use;
    node.newest = use;
}

void Lru::enter_deep(Use* use, Node& node) noexcept {
    use->node = &node;
    use->shallower = node.oldest;
    (node.oldest != nullptr ? node.oldest->deeper : node.newest) = use;
    node.oldest = use;
}

}  // namespace mmkey::radix
