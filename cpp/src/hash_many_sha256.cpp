// SHA-256 of many messages. A lane that comes to the end of its message takes the next one; messages come longest first, and
// when few are left, the lanes are fewer and the longest of them go first.
#include "hash_dispatch.h"
#include "hash_many.h"
#include "hash_sha256.h"
#include "kernels/constants.h"

#include <algorithm>
#include <utility>

namespace mmkey::detail {

using kernel::max_lanes;

namespace {

/// A message under way, as the runs of blocks that lie in one piece.
struct Lane {
    const std::uint8_t* in;  // the run's next block
    std::size_t run;         // blocks left of it
    std::size_t left;        // blocks left of the message
    const Message* message;
    std::size_t index;
    std::size_t at;             // bytes of the message before the run
    std::uint8_t scratch[192];  // a block across head and body, or the padded end

    void begin(const Message& m, std::size_t i) {
        message = &m;
        index = i;
        at = 0;
        left = (size_of(m) + 9 + 63) / 64;
        next_run();
    }

    /// Finds the blocks from byte `at` on. Only where there are none in place are bytes copied.
    void next_run() {
        const std::size_t size = size_of(*message), head = message->head.size();
        if (size - at >= sizeof scratch - 64 - 8) {
            const bool in_head = at + 64 <= head;
            if (in_head || at >= head) {
                in = in_head ? message->head.data() + at : message->body.data() + (at - head);
                run = ((in_head ? head : size) - at) / 64;
            } else {
                copy_from(*message, at, 64, scratch);
                in = scratch;
                run = 1;
            }
        } else {
            const std::size_t rest = size - at, whole = rest / 64 * 64;
            copy_from(*message, at, rest, scratch);
            run = whole / 64 + pad(scratch + whole, rest - whole, size);
            in = scratch;
        }
        at += 64 * run;
    }
};

constexpr std::size_t short_blocks = 4;
constexpr std::size_t turn = 512;  // blocks after which the lanes of a narrow kernel are chosen anew

class Scheduler {
  public:
    Scheduler(std::span<const Message> messages, std::span<const std::uint32_t> order, std::span<Digest> out)
        : messages_(messages), order_(order), out_(out) {}

    void run() {
        const Sha256Kernels& kernels = dispatch().sha256;
        const std::size_t width = widest(kernels.lanes);
        while (true) {
            while (active_ == 0 && short_group(kernels, width)) {
            }
            while (active_ < width && begun_ < order_.size()) begin(active_++);
            if (active_ == 0) return;
            step(kernels);
        }
    }

  private:
    void begin(std::size_t lane) {
        const std::size_t i = order_[begun_++];
        lanes_[lane].begin(messages_[i], i);
        std::memcpy(state_[lane], kernel::iv, sizeof kernel::iv);
    }

    /// Digests the next messages if they fill the lanes and are short and alike: nothing then needs keeping track of.
    bool short_group(const Sha256Kernels& kernels, std::size_t width) {
        if (!kernels.digests || order_.size() - begun_ < width) return false;
        const std::span<const std::uint32_t> group = order_.subspan(begun_, width);
        const auto blocks_of = [&](std::uint32_t i) { return (size_of(messages_[i]) + 9 + 63) / 64; };
        const std::size_t blocks = blocks_of(group[0]);
        if (blocks > short_blocks) return false;
        for (const std::uint32_t i : group)
            if (blocks_of(i) != blocks) return false;
        const std::uint8_t* in[max_lanes];
        for (std::size_t n = 0; n < width; ++n) {
            const Message& message = messages_[group[n]];
            const std::size_t size = size_of(message);
            std::uint8_t* room = short_[n];
            std::memset(room + 64 * (blocks - 1), 0, 64);
            if (blocks > 1) std::memset(room + 64 * (blocks - 2), 0, 64);
            if (message.head.empty()) {
                copy_short(room, message.body.data(), size);
            } else {
                copy_from(message, 0, size, room);
            }
            room[size] = 0x80;
            const std::uint64_t bits = __builtin_bswap64(8 * size);
            std::memcpy(room + 64 * blocks - 8, &bits, 8);
            in[n] = room;
        }
        kernels.digests(state_, in, blocks);
        for (std::size_t n = 0; n < width; ++n) std::memcpy(out_[group[n]].data(), state_[n], sizeof(Digest));
        begun_ += width;
        return true;
    }

    /// Runs the lanes until one of them has no more blocks in place.
    void step(const Sha256Kernels& kernels) {
        const auto* row = pick(kernels.lanes, active_);
        const std::size_t busy = std::min(row ? row->width : 1, active_);
        const bool choose = busy < active_;
        if (choose) longest_first(busy);
        const std::uint8_t* in[max_lanes];
        std::size_t blocks = choose ? turn : ~std::size_t{0};
        for (std::size_t i = 0; i < busy; ++i) {
            in[i] = lanes_[i].in;
            blocks = std::min(blocks, lanes_[i].run);
        }
        if (row) {
            for (std::size_t i = busy; i < row->width; ++i) in[i] = in[0];  // idle: what they compute is not looked at
            row->run(state_, in, blocks);
        } else {
            kernels.stream(state_[0], in[0], blocks);
        }
        for (std::size_t i = busy; i-- > 0;) advance(i, blocks);
    }

    void advance(std::size_t i, std::size_t blocks) {
        Lane& lane = lanes_[i];
        lane.in += 64 * blocks;
        lane.run -= blocks;
        lane.left -= blocks;
        if (lane.run != 0) return;
        if (lane.left != 0) {
            lane.next_run();
            return;
        }
        store_state(state_[i], out_[lane.index].data());
        if (begun_ < order_.size()) {
            begin(i);
        } else if (i != --active_) {
            move(active_, i);
        }
    }

    void move(std::size_t from, std::size_t to) {
        Lane& lane = lanes_[to];
        const bool own =
            lanes_[from].in >= lanes_[from].scratch && lanes_[from].in <= lanes_[from].scratch + sizeof lane.scratch;
        const std::size_t offset = own ? static_cast<std::size_t>(lanes_[from].in - lanes_[from].scratch) : 0;
        lane = lanes_[from];
        if (own) lane.in = lane.scratch + offset;
        std::memcpy(state_[to], state_[from], sizeof *state_);
    }

    void longest_first(std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
            std::size_t longest = i;
            for (std::size_t j = i + 1; j < active_; ++j)
                if (lanes_[j].left > lanes_[longest].left) longest = j;
            if (longest == i) continue;
            move(i, max_lanes);
            move(longest, i);
            move(max_lanes, longest);
        }
    }

    std::span<const Message> messages_;
    std::span<const std::uint32_t> order_;
    std::span<Digest> out_;
    std::size_t begun_ = 0;
    std::size_t active_ = 0;
    Lane lanes_[max_lanes + 1];  // the last one for exchanges
    std::uint32_t state_[max_lanes + 1][8];
    std::uint8_t short_[max_lanes][64 * short_blocks];
};

}  // namespace

void sha256_many(std::span<const Message> messages, std::span<const std::uint32_t> order, std::span<Digest> out) {
    Scheduler(messages, order, out).run();
}

}  // namespace mmkey::detail
