// Chains: what of a link is free of its parent runs in lanes over many links, and one compression a link goes in turn.
#include "hash_chains.h"

#include "hash_dispatch.h"
#include "hash_links.h"
#include "hash_many.h"
#include "hash_sha256.h"
#include "kernels/constants.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace mmkey::detail {

using kernel::ChainLink;
using kernel::max_lanes;

namespace {

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
                kernels.stream(link[done]->state, in[done], blocks, 0, 0, kernel::chunk_start);
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

/// Leading blocks of many links, grouped by how many they are.
class LeadingBlocks {
  public:
    explicit LeadingBlocks(Algorithm algorithm) noexcept : algorithm_(algorithm) {}

    void add(const std::uint8_t* in, std::size_t blocks, ChainLink& link) {
        Leading& leading = pending_[blocks % std::size(pending_)];
        if (leading.count != 0 && leading.blocks != blocks) leading.flush(algorithm_);
        leading.blocks = blocks;
        leading.in[leading.count] = in;
        leading.link[leading.count] = &link;
        if (++leading.count == max_lanes) leading.flush(algorithm_);
    }

    /// All but the last `but` of every link.
    void add_all_but(std::size_t but, Stretch& stretch) {
        for (std::size_t n = 0; n < stretch.count; ++n) {
            const std::size_t blocks = stretch.bytes[n] / 64;
            if (stretch.kind[n] == Stretch::led && blocks > but)
                add(stretch.prefix(n).data(), blocks - but, stretch.links[n]);
            if (stretch.kind[n] == Stretch::lone) std::memcpy(stretch.links[n].state, kernel::iv, sizeof kernel::iv);
        }
    }

    void flush() {
        for (Leading& leading : pending_)
            if (leading.count != 0) leading.flush(algorithm_);
    }

  private:
    Algorithm algorithm_;
    Leading pending_[4];
};

/// The dependent compressions of one chain where no kernel serves chains.
void link_by_link(Algorithm algorithm, const ChainLink* links, std::size_t count, const std::uint8_t* parent,
                  std::uint8_t* out) {
    for (std::size_t i = 0; i < count; ++i, parent = out, out += 32) {
        ChainLink link = links[i];
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

}  // namespace

/// All of the links but their states.
void Stretch::make_links(Algorithm algorithm) noexcept {
    if (count == kernel::stretch && each == all_led) {
        const std::size_t rest = each % 64;
        const std::uint8_t* end = text;
        for (ChainLink& link : links) {
            end += each;
            copy_short(link.tail, end - rest, rest);
        }
        return;
    }
    for (std::size_t n = 0; n < count; ++n) {
        const std::size_t rest = bytes[n] % 64;
        const std::uint8_t* const tail = text + begin[n] + bytes[n] - rest;
        if (made_for[n] == bytes[n]) {
            if (kind[n] != irregular) copy_short(links[n].tail, tail, rest);
            continue;
        }
        made_for[n] = bytes[n];
        kind[n] = irregular;
        if (!one_dependent_compression(algorithm, bytes[n])) continue;
        kind[n] = bytes[n] < 64 ? lone : led;
        finish_link(algorithm, links[n], tail, rest, bytes[n]);
    }
    all_led = each != 0 && count == kernel::stretch && each_is(led) ? each : nothing;
}

Chains::Chains(Algorithm algorithm)
    : algorithm_(algorithm),
      ahead_(algorithm == Algorithm::sha256 ? dispatch().sha256.ahead : dispatch().blake3.ahead) {
    Stretch* stretch = stretches_;
    for (Run& run : runs_) run.now = stretch++, run.ready = stretch++, run.next = stretch++;
}

std::size_t Chains::best() const noexcept {
    const auto& rows = algorithm_ == Algorithm::sha256 ? dispatch().sha256.chains : dispatch().blake3.chains;
    return ahead_ && widest(rows) < most ? 1 : most;  // two SHA-256 chains: measured, benchmarks/README.md
}

void Chains::begin(const Digest& parent, Digest* out) {
    Run& run = runs_[count_++];
    run.parent = parent;
    run.out = out;
    for (Stretch* stretch : {run.now, run.ready, run.next}) stretch->clear();
}

void Chains::grow(Stretch& stretch, std::size_t bytes) {
    const std::size_t capacity = std::max(2 * stretch.capacity, stretch.used + bytes + readable);
    auto larger = std::make_unique_for_overwrite<std::uint8_t[]>(capacity);
    std::copy_n(stretch.text, stretch.used, larger.get());
    stretch.larger = std::move(larger);
    stretch.text = stretch.larger.get();
    stretch.capacity = capacity;
}

void Chains::step() {
    const std::span runs(runs_, count_);
    bool any = false;
    for (Run& run : runs) {
        any |= run.ready->count != 0;
        run.ready->make_links(algorithm_);
    }
    if (any && !(ahead_ && count_ == 1 && hash_ahead(runs[0]))) {
        digest_now();
        lead(runs);
        digest_now();
    }
    for (Run& run : runs) std::swap(run.ready, run.next);
}

void Chains::finish(std::size_t chain) {
    while (runs_[chain].ready->count != 0 || runs_[chain].next->count != 0) step();
    digest_now();
    std::swap(runs_[chain], runs_[--count_]);
}

/// Hashes the leading blocks of all that is ready.
void Chains::lead(std::span<Run> runs) {
    LeadingBlocks leading(algorithm_);
    for (Run& run : runs) {
        leading.add_all_but(0, *run.ready);
        std::swap(run.now, run.ready);
    }
    leading.flush();
}

/// Digests a full stretch and hashes the leading blocks of the next one meanwhile, if both are such that it can be done.
bool Chains::hash_ahead(Run& run) {
    Stretch& ready = *run.ready;
    if (!ready.full_of_led()) return false;
    if (run.now->count == 0) {
        lead({&run, 1});
        return true;
    }
    kernel::Ahead job;
    if (ready.each / 64 == 1) {
        job.more = false;
        for (std::size_t n = 0; n < kernel::stretch; ++n)
            job.in[n] = ready.text + n * ready.each, job.flags[n] = kernel::chunk_start;
    } else {
        job.more = true;  // leading blocks than the last ones
        for (std::size_t n = 0; n < kernel::stretch; ++n) {
            const std::size_t last = ready.bytes[n] / 64 - 1;
            job.in[n] = ready.prefix(n).data() + 64 * last;
            job.flags[n] = last == 0 ? kernel::chunk_start : 0;
            if (last == 0) std::memcpy(ready.links[n].state, kernel::iv, sizeof kernel::iv);
        }
    }
    if (job.more) {
        LeadingBlocks leading(algorithm_);
        leading.add_all_but(1, ready);
        leading.flush();
    }
    job.links = run.now->links;
    job.ahead = ready.links;
    job.parent = run.parent.data();
    job.out = run.out->data();
    ahead_(&job);
    run.digested(kernel::stretch);
    run.now->clear();
    std::swap(run.now, run.ready);
    return true;
}

/// Digests what all leading blocks of are hashed.
void Chains::digest_now() {
    Run* active[most];
    std::size_t n = 0;
    for (Run& run : std::span(runs_, count_)) {
        const auto kinds = std::span(run.now->kind, run.now->count);
        if (std::ranges::find(kinds, Stretch::irregular) != kinds.end())
            digest_each(run);
        else if (!kinds.empty())
            active[n++] = &run;
    }
    for (std::size_t from = 0; n != 0;) {
        std::size_t until = kernel::stretch;
        for (const Run* run : std::span(active, n)) until = std::min(until, run->now->count);
        digest_links(std::span(active, n), from, until - from);
        from = until;
        for (std::size_t i = n; i-- > 0;) {
            if (active[i]->now->count != until) continue;
            active[i]->now->clear();
            active[i] = active[--n];
        }
    }
}

/// The dependent compressions of `count` links of each of the chains.
void Chains::digest_links(std::span<Run*> runs, std::size_t from, std::size_t count) {
    const auto& rows = algorithm_ == Algorithm::sha256 ? dispatch().sha256.chains : dispatch().blake3.chains;
    for (std::size_t done = 0; done < runs.size();) {
        const auto* row = pick(rows, runs.size() - done);
        if (!row) {
            Run& run = *runs[done++];
            link_by_link(algorithm_, run.now->links + from, count, run.parent.data(), run.out->data());
            run.digested(count);
            continue;
        }
        const std::size_t busy = std::min(row->width, runs.size() - done);
        std::uint8_t spare[32 * kernel::stretch];
        const ChainLink* links[most];
        const std::uint8_t* parents[most];
        std::uint8_t* out[most];
        for (std::size_t i = 0; i < row->width; ++i) {
            const Run& run = *runs[done + std::min(i, busy - 1)];
            links[i] = run.now->links + from;
            parents[i] = run.parent.data();
            out[i] = i < busy ? run.out->data() : spare;
        }
        row->run(links, count, parents, out);
        for (Run* run : runs.subspan(done, busy)) run->digested(count);
        done += busy;
    }
}

/// Links of any shape.
void Chains::digest_each(Run& run) {
    for (std::size_t n = 0; n < run.now->count; ++n) {
        Hasher hasher(algorithm_);
        hasher.update(run.now->prefix(n));
        hasher.update(run.parent);
        *run.out = hasher.digest();
        run.digested(1);
    }
    run.now->clear();
}

}  // namespace mmkey::detail
