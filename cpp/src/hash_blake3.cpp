#include "hash_tree.h"
#include "kernels/constants.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace mmkey {

using namespace detail;

Blake3::Blake3() noexcept : flags_(0) {
    std::memcpy(key_, kernel::iv, sizeof key_);
    reset();
}

Blake3 Blake3::keyed(std::span<const std::uint8_t, key_size> key) noexcept {
    Blake3 hasher;
    std::memcpy(hasher.key_, key.data(), key_size);
    hasher.flags_ = kernel::keyed_hash;
    hasher.reset();
    return hasher;
}

Blake3 Blake3::derive_key(Bytes context) noexcept {
    const TreeMode mode{kernel::iv, kernel::derive_key_context};
    Blake3 hasher;
    root_node(mode, context.data(), context.size(), 1)
        .output(reinterpret_cast<std::uint8_t*>(hasher.key_), sizeof hasher.key_, 0);
    hasher.flags_ = kernel::derive_key_material;
    hasher.reset();
    return hasher;
}

void Blake3::reset() noexcept {
    chunk_ = 0;
    depth_ = 0;
    start_chunk();
}

void Blake3::start_chunk() noexcept {
    std::memcpy(cv_, key_, sizeof cv_);
    buffered_ = 0;
    blocks_ = 0;
}

// The stack holds the complete subtrees to the left, largest first; as many as the number of their chunks has bits set.
// Two are merged no earlier than more input is known to follow, since the last merge of all is the root's.
void Blake3::merge_stack(std::uint64_t chunks) noexcept {
    const TreeMode mode{key_, flags_};
    while (depth_ > std::popcount(chunks)) {
        --depth_;
        parent_node(mode, stack_[depth_ - 1], stack_[depth_]).chaining_value(stack_[depth_ - 1]);
    }
}

void Blake3::push(const std::uint32_t value[8], std::uint64_t chunks_before) noexcept {
    merge_stack(chunks_before);
    std::memcpy(stack_[depth_++], value, sizeof *stack_);
}

void Blake3::absorb(Bytes data) noexcept {
    const auto stream = [&](const std::uint8_t* blocks, std::size_t count) {
        dispatch().blake3.stream(cv_, blocks, count, chunk_, flags_, blocks_ == 0 ? kernel::chunk_start : 0);
        blocks_ = static_cast<std::uint8_t>(blocks_ + count);
    };
    if (buffered_ != 0) {
        const std::size_t n = std::min(block_size - buffered_, data.size());
        std::memcpy(buffer_ + buffered_, data.data(), n);
        buffered_ = static_cast<std::uint8_t>(buffered_ + n);
        data = data.subspan(n);
        if (data.empty()) return;
        stream(buffer_, 1);
        buffered_ = 0;
    }
    const std::size_t whole =
        data.empty() ? 0 : (data.size() - 1) / block_size;  // the last block waits: it may be the end
    if (whole != 0) stream(data.data(), whole);
    data = data.subspan(whole * block_size);
    std::memcpy(buffer_, data.data(), data.size());
    buffered_ = static_cast<std::uint8_t>(data.size());
}

void Blake3::update(Bytes data, unsigned threads) {
    const TreeMode mode{key_, flags_};
    while (!data.empty()) {
        const std::size_t held = blocks_ * block_size + buffered_;
        if (held == chunk_size) {
            std::uint32_t value[8];
            chunk_node().chaining_value(value);
            push(value, chunk_);
            ++chunk_;
            start_chunk();
        } else if (held == 0 && data.size() > chunk_size) {
            // The largest complete subtree that starts here: a power of two of chunks, at a multiple of itself.
            std::uint64_t chunks = std::bit_floor(data.size() / chunk_size);
            while ((chunk_ & (chunks - 1)) != 0) chunks /= 2;
            const std::size_t size = chunks * chunk_size;
            std::uint32_t values[2][8];
            if (chunks == 1) {
                detail::chunk_node(mode, data.data(), size, chunk_).chaining_value(values[0]);
                push(values[0], chunk_);
            } else {
                subtree_children(mode, data.data(), size, chunk_, values, threads);
                push(values[0], chunk_);
                push(values[1], chunk_ + chunks / 2);
            }
            chunk_ += chunks;
            data = data.subspan(size);
        } else {
            if (held == 0) merge_stack(chunk_);
            const std::size_t n = std::min(chunk_size - held, data.size());
            absorb(data.first(n));
            data = data.subspan(n);
        }
    }
}

Node Blake3::chunk_node() const noexcept {
    Node node;
    std::memcpy(node.cv, cv_, sizeof cv_);
    std::memcpy(node.block, buffer_, buffered_);
    std::memset(node.block + buffered_, 0, block_size - buffered_);
    node.counter = chunk_;
    node.length = buffered_;
    node.flags = flags_ | (blocks_ == 0 ? kernel::chunk_start : 0) | kernel::chunk_end;
    return node;
}

void Blake3::digest(std::span<std::uint8_t> out, std::uint64_t seek) const noexcept {
    const TreeMode mode{key_, flags_};
    Node node;
    std::size_t left = depth_;
    if (buffered_ != 0 || left == 0) {
        node = chunk_node();
    } else {
        left -= 2;
        node = parent_node(mode, stack_[left], stack_[left + 1]);
    }
    while (left != 0) {
        std::uint32_t value[8];
        node.chaining_value(value);
        node = parent_node(mode, stack_[--left], value);
    }
    node.output(out.data(), out.size(), seek);
}

Digest Blake3::digest() const noexcept {
    Digest out;
    digest(out);
    return out;
}

}  // namespace mmkey
