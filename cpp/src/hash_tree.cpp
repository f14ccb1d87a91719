#include "hash_tree.h"

#include "hash_threads.h"
#include "kernels/constants.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>

namespace mmkey::detail {

using namespace kernel;

namespace {

struct Filled {
    std::uint32_t value[max_lanes];
    constexpr explicit Filled(std::uint32_t x) : value{} {
        for (auto& v : value) v = x;
    }
};
constexpr Filled full_blocks{64};
constexpr Filled no_flags{0};
constexpr Filled ends_chunk{chunk_end};

/// Runs `count` inputs of equally many whole blocks through the widest lanes that pay, then one by one. `counter` of
/// each follows the one before where `step` is 1.
void hash_lanes(const TreeMode& mode, const std::uint8_t* in, std::size_t stride, std::size_t count, std::size_t blocks,
                std::uint64_t counter, std::uint64_t step, std::uint32_t flags, std::uint32_t first,
                const std::uint32_t* last, std::uint32_t (*out)[8]) {
    const Blake3Kernels& kernels = dispatch().blake3;
    flags |= mode.flags;
    while (count != 0) {
        const auto* row = pick(kernels.lanes, count);
        if (!row) break;
        const std::size_t busy = std::min(count, row->width);
        const std::uint8_t* lanes[max_lanes];
        std::uint64_t counters[max_lanes];
        for (std::size_t i = 0; i < row->width; ++i) {
            lanes[i] = in + std::min(i, busy - 1) * stride;
            counters[i] = counter + i * step;
        }
        if (step != 0 && counter == 0 && mode.first_chunk) lanes[0] = mode.first_chunk;
        std::uint32_t spare[max_lanes][8];
        std::uint32_t (*to)[8] = busy == row->width ? out : spare;
        const Blake3Batch batch{lanes, blocks, mode.key, 0, counters, full_blocks.value, last, flags, first, to[0]};
        row->run(&batch);
        if (to == spare) std::memcpy(out, spare, busy * sizeof *out);
        in += busy * stride, counter += busy * step, out += busy, count -= busy;
    }
    for (; count != 0; --count, in += stride, counter += step, ++out) {
        std::uint32_t cv[8];
        std::memcpy(cv, mode.key, sizeof cv);
        const std::uint8_t* from = step != 0 && counter == 0 && mode.first_chunk ? mode.first_chunk : in;
        const std::size_t lead = blocks - 1;
        if (lead != 0) kernels.stream(cv, from, lead, counter, flags, first);
        kernels.compress(cv, from + 64 * lead, counter, 64, flags | (lead == 0 ? first : 0) | last[0]);
        std::memcpy(out, cv, sizeof cv);
    }
}

std::size_t degree() { return std::max<std::size_t>(widest(dispatch().blake3.lanes), 2); }

/// The bytes of a tree's left half: the largest power of two of chunks that leaves something to the right.
std::size_t left_size(std::size_t size) { return std::bit_floor((size - 1) / chunk_size) * chunk_size; }

/// The chaining values of a subtree at the lowest level that has at most `degree` of them, so that the parents of two
/// such lists fill the lanes. At least two where the subtree has more than one chunk.
std::size_t lower_values(const TreeMode& mode, const std::uint8_t* data, std::size_t size, std::uint64_t counter,
                         std::uint32_t (*out)[8]) {
    if (size <= degree() * chunk_size) {
        const std::size_t whole = size / chunk_size;
        hash_lanes(mode, data, chunk_size, whole, chunk_blocks, counter, 1, 0, chunk_start, ends_chunk.value, out);
        const std::size_t rest = size - whole * chunk_size;
        if (rest == 0) return whole;
        chunk_node(mode, data + whole * chunk_size, rest, counter + whole).chaining_value(out[whole]);
        return whole + 1;
    }
    const std::size_t left = left_size(size);
    std::uint32_t values[2 * max_lanes][8];
    std::size_t count = lower_values(mode, data, left, counter, values);
    count += lower_values(mode, data + left, size - left, counter + left / chunk_size, values + count);
    count = merge_level(mode, values, count);
    std::memcpy(out, values, count * sizeof *out);
    return count;
}

}  // namespace

void Node::chaining_value(std::uint32_t out[8]) const {
    std::uint32_t value[8];
    std::memcpy(value, cv, sizeof value);
    dispatch().blake3.compress(value, block, counter, length, flags);
    std::memcpy(out, value, sizeof value);
}

void Node::output(std::uint8_t* out, std::size_t size, std::uint64_t seek) const {
    std::uint64_t index = seek / 64;
    std::size_t skip = seek % 64;
    while (size != 0) {
        std::uint8_t bytes[64];
        dispatch().blake3.output(cv, block, index++, length, flags | root, bytes);
        const std::size_t n = std::min(size, 64 - skip);
        std::memcpy(out, bytes + skip, n);
        out += n, size -= n, skip = 0;
    }
}

Node parent_node(const TreeMode& mode, const std::uint32_t left[8], const std::uint32_t right[8]) {
    Node node;
    std::memcpy(node.cv, mode.key, sizeof node.cv);
    std::memcpy(node.block, left, 32);
    std::memcpy(node.block + 32, right, 32);
    node.counter = 0;
    node.length = 64;
    node.flags = mode.flags | parent;
    return node;
}

Node chunk_node(const TreeMode& mode, const std::uint8_t* data, std::size_t size, std::uint64_t counter) {
    const std::size_t whole = size == 0 ? 0 : (size - 1) / 64, rest = size - 64 * whole;
    Node node;
    std::memcpy(node.cv, mode.key, sizeof node.cv);
    node.counter = counter;
    node.flags = mode.flags | chunk_end | (whole == 0 ? chunk_start : 0);
    node.length = static_cast<std::uint32_t>(rest);
    if (whole != 0) dispatch().blake3.stream(node.cv, data, whole, counter, mode.flags, chunk_start);
    std::memset(node.block, 0, sizeof node.block);
    if (rest != 0) std::memcpy(node.block, data + 64 * whole, rest);
    return node;
}

std::size_t merge_level(const TreeMode& mode, std::uint32_t (*values)[8], std::size_t count) {
    const std::size_t pairs = count / 2;
    hash_lanes(mode, reinterpret_cast<const std::uint8_t*>(values), 64, pairs, 1, 0, 0, parent, 0, no_flags.value,
               values);
    if (count % 2 != 0) std::memmove(values[pairs], values[count - 1], sizeof *values);
    return pairs + count % 2;
}

namespace {

/// The chaining value of a whole subtree, of a single chunk too.
void subtree_value(const TreeMode& mode, const std::uint8_t* data, std::size_t size, std::uint64_t counter,
                   std::uint32_t out[8]) {
    std::uint32_t values[max_lanes][8];
    std::size_t count = lower_values(mode, data, size, counter, values);
    while (count > 1) count = merge_level(mode, values, count);
    std::memcpy(out, values, sizeof *values);
}

constexpr std::size_t least_piece = 64 * 1024;  // takes some 10 us, as waking a thread does

}  // namespace

void subtree_children(const TreeMode& mode, const std::uint8_t* data, std::size_t size, std::uint64_t counter,
                      std::uint32_t out[2][8], unsigned threads) {
    if (threads > 1 && size >= 2 * least_piece) {
        // Equal complete subtrees, several a thread, and what is left: one level of the tree, whatever is below it.
        const std::size_t piece = std::max(std::bit_floor(size / (4 * std::size_t{threads})), least_piece);
        const std::size_t pieces = (size + piece - 1) / piece;
        const auto values = std::make_unique_for_overwrite<std::uint32_t[][8]>(pieces);
        parallel_for(threads, pieces, [&](std::size_t i) {
            const std::size_t from = i * piece;
            subtree_value(mode, data + from, std::min(piece, size - from), counter + from / chunk_size, values[i]);
        });
        std::size_t count = pieces;
        while (count > 2) count = merge_level(mode, values.get(), count);
        std::memcpy(out, values.get(), 2 * sizeof *out);
        return;
    }
    std::uint32_t values[max_lanes][8];
    std::size_t count = lower_values(mode, data, size, counter, values);
    while (count > 2) count = merge_level(mode, values, count);
    std::memcpy(out, values, 2 * sizeof *values);
}

Node root_node(const TreeMode& mode, const std::uint8_t* data, std::size_t size, unsigned threads) {
    if (size <= chunk_size) return chunk_node(mode, data, size, 0);
    std::uint32_t children[2][8];
    subtree_children(mode, data, size, 0, children, threads);
    return parent_node(mode, children[0], children[1]);
}

}  // namespace mmkey::detail
