// Chains: what of a link is free of its parent runs in lanes over many links, and one compression a link goes in turn.
#include "hash_dispatch.h"
#include "hash_links.h"
#include "hash_sha256.h"
#include "kernels/constants.h"

#include <algorithm>
#include <cstring>

namespace mmkey {

using namespace detail;
using kernel::ChainLink;
using kernel::max_lanes;

namespace {

constexpr std::size_t window = 64;      // links of a chain made ready at a time: 8 KiB of the first-level cache
constexpr std::size_t most_chains = 4;  // side by side

/// A chain under way.
struct Cursor {
    const Chain* chain = nullptr;
    std::size_t link = 0;  // the next one
    std::size_t at = 0;    // where its prefix starts

    std::size_t left() const { return chain->sizes.size() - link; }
    const Digest& parent() const { return link == 0 ? chain->parent : chain->out[link - 1]; }

    /// How many links from here on, `most` at the most, have one dependent compression each.
    std::size_t regular(Algorithm algorithm, std::size_t most) const {
        most = std::min(most, left());
        std::size_t n = 0;
        while (n < most && one_dependent_compression(algorithm, chain->sizes[link + n])) ++n;
        return n;
    }

    /// Hashes one link of any shape.
    void step(Algorithm algorithm) {
        const std::size_t size = chain->sizes[link];
        Hasher hasher(algorithm);
        hasher.update(chain->prefixes.subspan(at, size));
        hasher.update(parent());
        chain->out[link++] = hasher.digest();
        at += size;
    }
};

/// The leading blocks of links, collected until the lanes are full: all of one batch are equally many.
struct Leading {
    std::size_t blocks = 0;
    std::size_t count = 0;
    const std::uint8_t* in[max_lanes];
    ChainLink* link[max_lanes];

    void sha256() {
        const Sha256Kernels& kernels = dispatch().sha256;
        for (std::size_t done = 0; done < count;) {
            const auto* row = pick(kernels.lanes, count - done);
            if (!row) {
                std::memcpy(link[done]->state, kernel::iv, sizeof kernel::iv);
                kernels.stream(link[done]->state, in[done], blocks);
                ++done;
                continue;
            }
            const std::size_t busy = std::min(row->width, count - done);
            const std::uint8_t* lanes[max_lanes];
            std::uint32_t state[max_lanes][8];
            for (std::size_t i = 0; i < row->width; ++i) {
                lanes[i] = in[done + std::min(i, busy - 1)];
                std::memcpy(state[i], kernel::iv, sizeof kernel::iv);
            }
            row->run(state, lanes, blocks);
            for (std::size_t i = 0; i < busy; ++i) std::memcpy(link[done + i]->state, state[i], sizeof *state);
            done += busy;
        }
    }

    void blake3() {
        const Blake3Kernels& kernels = dispatch().blake3;
        static constexpr std::uint64_t counter[max_lanes] = {};
        static constexpr std::uint32_t no_flags[max_lanes] = {};
        static constexpr std::uint32_t length[max_lanes] = {64, 64, 64, 64, 64, 64, 64, 64,
                                                            64, 64, 64, 64, 64, 64, 64, 64};
        for (std::size_t done = 0; done < count;) {
            const auto* row = pick(kernels.lanes, count - done);
            if (!row) {
                std::memcpy(link[done]->state, kernel::iv, sizeof kernel::iv);
                for (std::size_t b = 0; b < blocks; ++b)
                    kernels.compress(link[done]->state, in[done] + 64 * b, 0, 64, b == 0 ? kernel::chunk_start : 0);
                ++done;
                continue;
            }
            const std::size_t busy = std::min(row->width, count - done);
            const std::uint8_t* lanes[max_lanes];
            std::uint32_t out[max_lanes][8];
            for (std::size_t i = 0; i < row->width; ++i) lanes[i] = in[done + std::min(i, busy - 1)];
            const kernel::Blake3Batch batch{lanes,    blocks, kernel::iv,          0,     counter, length,
                                            no_flags, 0,      kernel::chunk_start, out[0]};
            row->run(&batch);
            for (std::size_t i = 0; i < busy; ++i) std::memcpy(link[done + i]->state, out[i], sizeof *out);
            done += busy;
        }
    }

    void flush(Algorithm algorithm) {
        if (algorithm == Algorithm::sha256)
            sha256();
        else
            blake3();
        count = 0;
    }
};

/// Links of one window, and the leading blocks of theirs that wait for full lanes, by how many they are.
class Window {
  public:
    explicit Window(Algorithm algorithm) : algorithm_(algorithm) {}

    /// Makes `count` regular links of a chain ready in `links`, up to the leading blocks that are pending; gives where the
    /// prefix after them starts.
    std::size_t prepare(const Cursor& cursor, std::size_t count, ChainLink* links) {
        const Bytes prefixes = cursor.chain->prefixes;
        std::size_t at = cursor.at;
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t size = cursor.chain->sizes[cursor.link + i];
            const std::size_t rest = size % 64, lead = size - rest;
            const std::uint8_t* tail = prefixes.data() + at + lead;
            std::uint8_t last[32];
            if (prefixes.size() - at - lead < sizeof last) {
                std::memset(last, 0, sizeof last);
                if (rest != 0) std::memcpy(last, tail, rest);
                tail = last;
            }
            finish_link(algorithm_, links[i], tail, rest, size);
            lead_in(prefixes.data() + at, lead / 64, links[i]);
            at += size;
        }
        return at;
    }

    void flush() {
        for (Leading& leading : pending_)
            if (leading.count != 0) leading.flush(algorithm_);
    }

  private:
    void lead_in(const std::uint8_t* in, std::size_t blocks, ChainLink& link) {
        if (blocks == 0) {
            std::memcpy(link.state, kernel::iv, sizeof kernel::iv);
            return;
        }
        Leading& leading = pending_[blocks % std::size(pending_)];
        if (leading.count != 0 && leading.blocks != blocks) leading.flush(algorithm_);
        leading.blocks = blocks;
        leading.in[leading.count] = in;
        leading.link[leading.count] = &link;
        if (++leading.count == max_lanes) leading.flush(algorithm_);
    }

    Algorithm algorithm_;
    Leading pending_[4];
};

/// The dependent compressions of one chain where no kernel serves chains.
void link_by_link(Algorithm algorithm, ChainLink* links, std::size_t count, const std::uint8_t* parent,
                  std::uint8_t* out) {
    for (std::size_t i = 0; i < count; ++i, parent = out, out += 32) {
        ChainLink& link = links[i];
        std::memcpy(link.tail + link.offset, parent, 32);
        if (algorithm == Algorithm::sha256) {
            dispatch().sha256.stream(link.state, link.tail, 1);
            store_state(link.state, out);
        } else {
            dispatch().blake3.compress(link.state, link.tail, 0, link.row[2], link.row[3]);
            std::memcpy(out, link.state, 32);
        }
    }
}

/// The dependent compressions of `count` links of each of the chains.
void run_links(Algorithm algorithm, std::span<const Cursor> cursors, ChainLink (*links)[window], std::size_t count) {
    const auto& rows = algorithm == Algorithm::sha256 ? dispatch().sha256.chains : dispatch().blake3.chains;
    const auto out_of = [&](std::size_t n) { return cursors[n].chain->out[cursors[n].link].data(); };
    for (std::size_t done = 0; done < cursors.size();) {
        const auto* row = pick(rows, cursors.size() - done);
        if (!row) {
            link_by_link(algorithm, links[done], count, cursors[done].parent().data(), out_of(done));
            ++done;
            continue;
        }
        std::uint8_t spare[32 * window];
        const ChainLink* link_of[most_chains];
        const std::uint8_t* parent_of[most_chains];
        std::uint8_t* to[most_chains];
        for (std::size_t i = 0; i < row->width; ++i) {
            const bool busy = done + i < cursors.size();
            const std::size_t n = busy ? done + i : done;
            link_of[i] = links[n];
            parent_of[i] = cursors[n].parent().data();
            to[i] = busy ? out_of(n) : spare;
        }
        row->run(link_of, count, parent_of, to);
        done += row->width;
    }
}

}  // namespace

void digest_chains(Algorithm algorithm, std::span<const Chain> chains) {
    Cursor cursors[most_chains];
    ChainLink links[most_chains][window];
    std::size_t active = 0;
    Window ready(algorithm);
    for (auto next = chains.begin();;) {
        while (active < most_chains && next != chains.end()) cursors[active++] = Cursor{&*next++};
        std::size_t count = window;
        for (std::size_t n = 0; n < active;) {
            Cursor& cursor = cursors[n];
            std::size_t regular = 0;
            while (cursor.left() != 0 && (regular = cursor.regular(algorithm, count)) == 0) cursor.step(algorithm);
            if (cursor.left() == 0) {
                cursor = cursors[--active];  // done; the last one takes its place
                continue;
            }
            count = std::min(count, regular);
            ++n;
        }
        if (active == 0) {
            if (next == chains.end()) return;
            continue;
        }
        std::size_t at[most_chains];
        for (std::size_t n = 0; n < active; ++n) at[n] = ready.prepare(cursors[n], count, links[n]);
        ready.flush();
        run_links(algorithm, std::span(cursors, active), links, count);
        for (std::size_t n = 0; n < active; ++n) {
            cursors[n].at = at[n];
            cursors[n].link += count;
        }
    }
}

}  // namespace mmkey
