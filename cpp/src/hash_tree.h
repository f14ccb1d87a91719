// BLAKE3's tree over whole messages that lie in memory.
#pragma once

#include "hash_dispatch.h"

#include <cstddef>
#include <cstdint>

namespace mmkey::detail {

constexpr std::size_t chunk_size = 1024;
constexpr std::size_t chunk_blocks = 16;

/// What every node of one tree shares.
struct TreeMode {
    const std::uint32_t* key;
    std::uint32_t flags;
    const std::uint8_t* first_chunk = nullptr;  // where chunk 0 lies, if not in front of chunk 1
};

/// A node whose chaining value is still to be made, so that it may yet become the root.
struct Node {
    std::uint32_t cv[8];
    std::uint8_t block[64];
    std::uint64_t counter;
    std::uint32_t length;
    std::uint32_t flags;

    void chaining_value(std::uint32_t out[8]) const;
    /// Bytes [seek, seek + size) of the root's output.
    void output(std::uint8_t* out, std::size_t size, std::uint64_t seek) const;
};

Node parent_node(const TreeMode& mode, const std::uint32_t left[8], const std::uint32_t right[8]);

/// A chunk of at most 1,024 bytes as a node: all its blocks but the last compressed.
Node chunk_node(const TreeMode& mode, const std::uint8_t* data, std::size_t size, std::uint64_t counter);

/// The two children of a subtree's root, over more than one chunk from chunk `counter` on. `threads` at most.
void subtree_children(const TreeMode& mode, const std::uint8_t* data, std::size_t size, std::uint64_t counter,
                      std::uint32_t out[2][8], unsigned threads);

/// The root of a whole message.
Node root_node(const TreeMode& mode, const std::uint8_t* data, std::size_t size, unsigned threads);

/// The digest of a message in two parts.
Digest blake3_digest(const Message& message, unsigned threads);

/// One parent of each two neighbours of `count` values; an odd last one is carried over. In place; gives their number.
std::size_t merge_level(const TreeMode& mode, std::uint32_t (*values)[8], std::size_t count);

}  // namespace mmkey::detail
