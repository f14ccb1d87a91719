// BLAKE3 of many messages: those of one chunk side by side, by their number of blocks; longer ones have lanes enough of
// their own.
#include "hash_many.h"
#include "hash_tree.h"
#include "kernels/constants.h"

#include <algorithm>
#include <memory>

namespace mmkey::detail {

using kernel::max_lanes;

namespace {

/// Messages of equally many blocks that wait until the lanes are full.
class Waiting {
  public:
    void add(const Message& message, std::size_t blocks, Digest& out) {
        const std::size_t size = size_of(message);
        if (message.head.empty() && size == 64 * blocks) {
            in_[count_] = message.body.data();
        } else {
            if (!scratch_) scratch_ = std::make_unique_for_overwrite<std::uint8_t[]>(max_lanes * 64 * blocks);
            std::uint8_t* room = scratch_.get() + count_ * 64 * blocks;
            std::memset(room + 64 * (blocks - 1), 0, 64);
            if (message.head.empty())
                copy_short(room, message.body.data(), size);
            else
                copy_from(message, 0, size, room);
            in_[count_] = room;
        }
        length_[count_] = static_cast<std::uint32_t>(size - 64 * (blocks - 1));
        out_[count_] = &out;
        if (++count_ == widest(dispatch().blake3.lanes)) flush(blocks);
    }

    void flush(std::size_t blocks) {
        static constexpr std::uint64_t counter[max_lanes] = {};
        static constexpr std::uint32_t ends = kernel::chunk_end | kernel::root;
        static constexpr std::uint32_t flags[max_lanes] = {ends, ends, ends, ends, ends, ends, ends, ends,
                                                           ends, ends, ends, ends, ends, ends, ends, ends};
        const Blake3Kernels& kernels = dispatch().blake3;
        for (std::size_t done = 0; done < count_;) {
            std::uint32_t out[max_lanes][8];
            std::size_t busy = 1;
            if (const auto* row = pick(kernels.lanes, count_ - done)) {
                busy = std::min(row->width, count_ - done);
                const std::uint8_t* in[max_lanes];
                std::uint32_t length[max_lanes];
                for (std::size_t i = 0; i < row->width; ++i) {
                    in[i] = in_[done + std::min(i, busy - 1)];
                    length[i] = length_[done + std::min(i, busy - 1)];
                }
                const kernel::Blake3Batch batch{in,    blocks, kernel::iv,          0,     counter, length,
                                                flags, 0,      kernel::chunk_start, out[0]};
                row->run(&batch);
            } else {
                std::memcpy(out[0], kernel::iv, sizeof kernel::iv);
                const std::size_t lead = blocks - 1;
                if (lead != 0) kernels.stream(out[0], in_[done], lead, 0, 0, kernel::chunk_start);
                kernels.compress(out[0], in_[done] + 64 * lead, 0, length_[done],
                                 ends | (lead == 0 ? kernel::chunk_start : 0));
            }
            for (std::size_t i = 0; i < busy; ++i) std::memcpy(out_[done + i]->data(), out[i], sizeof *out);
            done += busy;
        }
        count_ = 0;
    }

  private:
    std::size_t count_ = 0;
    const std::uint8_t* in_[max_lanes];
    std::uint32_t length_[max_lanes];
    Digest* out_[max_lanes];
    std::unique_ptr<std::uint8_t[]> scratch_;
};

}  // namespace

Digest blake3_digest(const Message& message, unsigned threads) {
    const std::size_t size = size_of(message), head = message.head.size();
    std::uint8_t first[chunk_size];
    TreeMode mode{kernel::iv, 0, nullptr};
    const std::uint8_t* data = message.body.data();
    if (head >= chunk_size) {  // no header is that long; whoever has one gets it hashed in order
        Blake3 hasher;
        hasher.update(message.head, threads);
        hasher.update(message.body, threads);
        return hasher.digest();
    }
    if (head != 0) {
        copy_from(message, 0, std::min(size, chunk_size), first);
        mode.first_chunk = first;
        // Where the first chunk would start if the body held it all; only later chunks are read from there.
        data = reinterpret_cast<const std::uint8_t*>(reinterpret_cast<std::uintptr_t>(data) - head);
        if (size <= chunk_size) data = first;
    }
    Node node = root_node(mode, data, size, threads);
    dispatch().blake3.compress(node.cv, node.block, 0, node.length, node.flags | kernel::root);
    Digest out;
    std::memcpy(out.data(), node.cv, out.size());
    return out;
}

void blake3_many(std::span<const Message> messages, std::span<const std::uint32_t> order, std::span<Digest> out) {
    Waiting waiting[chunk_blocks + 1];
    for (const std::uint32_t i : order) {
        const std::size_t size = size_of(messages[i]);
        if (size > chunk_size) {
            out[i] = blake3_digest(messages[i], 1);
        } else {
            const std::size_t blocks = std::max<std::size_t>((size + 63) / 64, 1);
            waiting[blocks].add(messages[i], blocks, out[i]);
        }
    }
    for (std::size_t blocks = 1; blocks <= chunk_blocks; ++blocks) waiting[blocks].flush(blocks);
}

}  // namespace mmkey::detail
