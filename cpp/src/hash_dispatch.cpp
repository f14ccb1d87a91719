#include "hash_dispatch.h"

#include "mmkey/cpu.h"

#include "hash_links.h"
#include "kernels/constants.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

namespace mmkey::detail {

namespace {

using namespace kernel;

bool always(const CpuFeatures&) { return true; }

/// One ISA's answer to one operation.
template <typename Kernels>
struct Row {
    std::string_view isa;
    bool (*runs)(const CpuFeatures&);
    Kernels kernels;
};

using StreamRow = Row<Sha256Serial>;
using ManyRow = Row<Sha256Many>;
using Blake3Row = Row<Blake3Kernels>;
using PixelsRow = Row<PackPixels*>;

// Widest first: the first row that this CPU runs is taken. The second number of a lane row is the number of busy lanes from
// which it was measured to beat the rows below it (Xeon with AVX-512 and SHA-NI; benchmarks/README.md).

#ifdef MMKEY_X86_KERNELS
bool has_avx512(const CpuFeatures& cpu) { return cpu.avx512; }
bool has_avx2(const CpuFeatures& cpu) { return cpu.avx2; }
bool has_sse41(const CpuFeatures& cpu) { return cpu.sse41; }
bool has_shani(const CpuFeatures& cpu) { return cpu.shani; }
#elif defined(MMKEY_ARM_KERNELS)
bool has_armsha2(const CpuFeatures& cpu) { return cpu.armsha2; }
#endif

const StreamRow stream_rows[] = {
#ifdef MMKEY_X86_KERNELS
    {"shani", has_shani, {sha256_stream_shani, {{{2, 2, sha256_chain2_shani}, {1, 1, sha256_chain1_shani}}}}},
#endif
#ifdef MMKEY_ARM_KERNELS
    {"armsha2", has_armsha2, {sha256_stream_armsha2, {}}},
#endif
    {"portable", always, {sha256_stream_portable, {}}},
};

const ManyRow many_rows[] = {
#ifdef MMKEY_X86_KERNELS
    {"avx512",
     [](const CpuFeatures& cpu) { return cpu.avx512 && cpu.shani; },
     {{{{16, 11, sha256_lanes16_avx512}, {8, 6, sha256_lanes8_avx512}, {2, 2, sha256_lanes2_shani}}},
      sha256_digests16_avx512,
      sha256_ahead_avx512}},
    {"avx512", has_avx512, {{{{16, 7, sha256_lanes16_avx512}, {8, 2, sha256_lanes8_avx512}}}, sha256_digests16_avx512}},
    {"shani", has_shani, {{{{2, 2, sha256_lanes2_shani}}}}},
    {"avx2", has_avx2, {{{{8, 3, sha256_lanes8_avx2}}}, sha256_digests8_avx2}},
#endif
#ifdef MMKEY_ARM_KERNELS
    {"armsha2", has_armsha2, {{{{2, 2, sha256_lanes2_armsha2}}}}},
#endif
    {"portable", always, {}},
};

const Blake3Row blake3_rows[] = {
#ifdef MMKEY_X86_KERNELS
    {"avx512",
     has_avx512,
     {blake3_compress_avx512,
      blake3_stream_avx512,
      blake3_output_avx512,
      {{{4, 2, blake3_chain4_avx512}, {1, 1, blake3_chain1_avx512}}},
      {{{16, 9, blake3_lanes16_avx512}, {8, 5, blake3_lanes8_avx512}, {4, 2, blake3_lanes4_avx512}}},
      blake3_ahead_avx512}},
    {"avx2",
     has_avx2,
     {blake3_compress_sse41,
      blake3_stream_sse41,
      blake3_output_sse41,
      {{{1, 1, blake3_chain1_sse41}}},
      {{{8, 5, blake3_lanes8_avx2}, {4, 3, blake3_lanes4_sse41}}}}},
    {"sse41",
     has_sse41,
     {blake3_compress_sse41,
      blake3_stream_sse41,
      blake3_output_sse41,
      {{{1, 1, blake3_chain1_sse41}}},
      {{{4, 3, blake3_lanes4_sse41}}}}},
#endif
#ifdef MMKEY_ARM_KERNELS
    {"neon",
     [](const CpuFeatures& cpu) { return cpu.neon; },
     {blake3_compress_portable, blake3_stream_portable, blake3_output_portable, {}, {{{4, 3, blake3_lanes4_neon}}}}},
#endif
    {"portable", always, {blake3_compress_portable, blake3_stream_portable, blake3_output_portable, {}, {}}},
};

const PixelsRow pixels_rows[] = {
#ifdef MMKEY_X86_KERNELS
    {"avx512", has_avx512, pixels_pack_avx512},
    {"sse41", has_sse41, pixels_pack_sse41},
#endif
#ifdef MMKEY_ARM_KERNELS
    {"neon", [](const CpuFeatures& cpu) { return cpu.neon; }, pixels_pack_neon},
#endif
    {"portable", always, pixels_pack_portable},
};

// ---- known answers ----
//
// Message i is 129 bytes of the pattern 0, 1, ..., 250, 0, 1, ... from its byte i on: three blocks, starting unaligned.

constexpr std::size_t answer_length = 129;
constexpr std::size_t answer_blocks = 3;

// The first four bytes of each digest, big-endian; from hashlib and the reference implementation of BLAKE3.
constexpr std::uint32_t sha256_answers[max_lanes] = {
    0x5099c6a5, 0xb5baf29e, 0x537910a7, 0xb4b5e143, 0xad0fa852, 0x37952b84, 0xda1a3a51, 0xf05d623f,
    0x0a011eb2, 0x80f8d9c2, 0xf9808e79, 0x8b4358d8, 0x6ef33d01, 0x88f789b7, 0xf953338c, 0x648d8f7d};
constexpr std::uint32_t blake3_answers[max_lanes] = {
    0x683aaae9, 0x66c5ca34, 0x2c84a77f, 0xaa80d1d8, 0xa00fabc5, 0x35f8f600, 0xe452c179, 0x78fe119c,
    0x323f9e14, 0x708d848f, 0xa7f531b0, 0xaf71cccc, 0xedef5297, 0x8bc3a7c9, 0x34b92cb8, 0x85833f36};

// Chain i has two links, H(64 + i bytes of the pattern || parent), the first parent being the next 32 bytes of the pattern;
// the first four bytes of both digests.
constexpr std::size_t chain_answers = 24;
constexpr std::uint32_t sha256_chain_answers[chain_answers][2] = {
    {0x08359b10, 0x6405095f}, {0xa7b3830f, 0x24b93c5a}, {0xb4f5d9b1, 0xe30f135c}, {0x014ecaea, 0x49cd5afb},
    {0xbce0aff1, 0xa7cdafc9}, {0x4565d7b8, 0x39d64a12}, {0xddadeb66, 0x357baa1e}, {0xc15a8928, 0x238bd7b7},
    {0xae8e3d79, 0x5172ba86}, {0x98545371, 0x65482708}, {0x6323dce2, 0x23df651f}, {0x8150f7c5, 0xc2b1d741},
    {0x44d21db7, 0x08de191e}, {0xb9b7c375, 0xf70fe861}, {0xa47a551b, 0x2330fb32}, {0x60780e94, 0x950c7df4},
    {0x09373f12, 0xafc4f773}, {0x13aaa9b5, 0x7dd0d8b0}, {0x5b0a32f1, 0x1ff7e5ab}, {0x32796a0a, 0x7002447e},
    {0xda9ab893, 0x561af88a}, {0x9c945573, 0xbbed5016}, {0xd32ab009, 0x17d52720}, {0xda18797e, 0xbc1d9b8b}};
constexpr std::uint32_t blake3_chain_answers[chain_answers][2] = {

    {0xfd374848, 0x5408bf14}, {0x8a06220c, 0x1cd2de19}, {0xc0828951, 0x248abae3}, {0xa2c85460, 0xa4910e63},
    {0x8e2eb1bb, 0xcc3825a1}, {0x8f5ba69b, 0x2b79a077}, {0x9db10f45, 0x3c55edc2}, {0x7bf6852f, 0x2ebce2bb},
    {0x49f7f1d3, 0x8d1c8a11}, {0x04fa0b7c, 0x9138f307}, {0x4e57d053, 0x1f737518}, {0xe539064d, 0x1fa5a51e},
    {0x5f13a0f0, 0xafcea058}, {0xe26dea91, 0x5307d8a5}, {0x5a246449, 0x4608bba4}, {0x929dcdaf, 0xf604edc1},
    {0xc881a3c5, 0x280085ee}, {0xa2b62d6e, 0xee7e3dc0}, {0x6d543dd8, 0x277a58ab}, {0x028c05bf, 0x2bb1e761},
    {0x957db4f3, 0x18e5a897}, {0x2cddf24a, 0xb56b6955}, {0x4f3ec994, 0xeced2509}, {0x82878aa8, 0xa4bcd26f}};

// A chain of 16 links, H(prefix j || parent), prefix j being 64 + j bytes of the pattern from its byte j on, and 64 more for j of
// 3, 9 and 10; the first parent as above. The first four bytes of digests 7 and 15.
constexpr std::uint32_t sha256_ahead_answers[2] = {0x4a699dc7, 0x2692fae6};
constexpr std::uint32_t blake3_ahead_answers[2] = {0xdbe02f32, 0xe44699ee};

struct Messages {
    std::uint8_t bytes[max_lanes][1 + 64 * answer_blocks] = {};
    const std::uint8_t* in[max_lanes];

    explicit Messages(bool pad) {
        for (std::size_t i = 0; i < max_lanes; ++i) {
            std::uint8_t* p = bytes[i] + (i & 1);
            for (std::size_t j = 0; j < answer_length; ++j) p[j] = static_cast<std::uint8_t>((i + j) % 251);
            if (pad) {
                p[answer_length] = 0x80;
                p[64 * answer_blocks - 2] = 8 * answer_length >> 8;
                p[64 * answer_blocks - 1] = 8 * answer_length & 255;
            }
            in[i] = p;
        }
    }
};

std::uint32_t big_endian(const void* bytes) {
    std::uint32_t word;
    std::memcpy(&word, bytes, 4);
    return __builtin_bswap32(word);
}

bool right(const LaneRows<ChainLinks>& rows, const std::uint32_t (*answers)[2], Algorithm algorithm, const auto& lead) {
    for (const auto& row : rows) {
        if (!row.run) continue;
        for (std::size_t first = 0; first < chain_answers; first += row.width) {
            ChainLink links[max_lanes][2];
            std::uint8_t parents[max_lanes][32], out[max_lanes][64];
            const ChainLink* link_of[max_lanes];
            const std::uint8_t* parent_of[max_lanes];
            std::uint8_t* out_of[max_lanes];
            for (std::size_t n = 0; n < row.width; ++n) {
                const std::size_t i = std::min(first + n, chain_answers - 1);
                for (std::size_t j = 0; j < 32; ++j) parents[n][j] = static_cast<std::uint8_t>((64 + i + j) % 251);
                for (auto& link : links[n]) {
                    std::uint8_t prefix[96] = {};
                    for (std::size_t j = 0; j < 64 + i; ++j) prefix[j] = static_cast<std::uint8_t>(j);
                    lead(link.state, prefix);
                    finish_link(algorithm, link, prefix + 64, i, 64 + i);
                }
                link_of[n] = links[n], parent_of[n] = parents[n], out_of[n] = out[n];
            }
            row.run(link_of, 2, parent_of, out_of);
            for (std::size_t n = 0; n < row.width; ++n) {
                const std::size_t i = std::min(first + n, chain_answers - 1);
                if (big_endian(out[n]) != answers[i][0] || big_endian(out[n] + 32) != answers[i][1]) return false;
            }
        }
    }
    return true;
}

bool right(ChainAhead* ahead, const std::uint32_t answers[2], Algorithm algorithm, const auto& compress) {
    if (!ahead) return true;
    std::uint8_t prefix[2 * stretch][160] = {}, digests[1 + 2 * stretch][32];
    ChainLink links[3 * stretch] = {};
    const std::uint8_t* last[2 * stretch];
    std::uint32_t flags[2 * stretch];
    for (std::size_t i = 0; i < 32; ++i) digests[0][i] = static_cast<std::uint8_t>(i);
    for (std::size_t j = 0; j < 2 * stretch; ++j) {
        const bool two = j == 3 || j == 9 || j == 10;
        const std::size_t blocks = two ? 128 : 64;
        for (std::size_t i = 0; i < blocks + j; ++i) prefix[j][i] = static_cast<std::uint8_t>(j + i);
        finish_link(algorithm, links[j], prefix[j] + blocks, j, blocks + j);
        std::memcpy(links[j].state, iv, sizeof iv);
        if (two) compress(links[j].state, prefix[j], chunk_start);
        last[j] = prefix[j] + blocks - 64;
        flags[j] = two ? 0 : chunk_start;
        if (j < stretch) compress(links[j].state, last[j], flags[j]);
    }
    for (std::size_t n : {std::size_t{0}, stretch}) {
        Ahead job{links + n, digests[n], digests[1 + n], links + n + stretch, {}, {}, n == 0};
        for (std::size_t i = 0; i < stretch; ++i)
            job.in[i] = last[stretch - n + i], job.flags[i] = flags[stretch - n + i];
        ahead(&job);
    }
    return big_endian(digests[stretch]) == answers[0] && big_endian(digests[2 * stretch]) == answers[1];
}

bool right(const Sha256Serial& serial) {
    const Messages messages(true);
    for (std::size_t i = 0; i < max_lanes; ++i) {
        std::uint32_t state[8];
        std::memcpy(state, iv, sizeof state);
        serial.stream(state, messages.in[i], answer_blocks);
        if (state[0] != sha256_answers[i]) return false;
    }
    return right(serial.chains, sha256_chain_answers, Algorithm::sha256,
                 [&](std::uint32_t state[8], const std::uint8_t* block) {
                     std::memcpy(state, iv, sizeof iv);
                     serial.stream(state, block, 1);
                 });
}

bool right(const Sha256Many& many) {
    const Messages messages(true);
    for (const auto& row : many.lanes) {
        if (!row.run) continue;
        std::uint32_t state[max_lanes][8];
        for (auto& lane : state) std::memcpy(lane, iv, sizeof lane);
        row.run(state, messages.in, answer_blocks);
        for (std::size_t i = 0; i < row.width; ++i)
            if (state[i][0] != sha256_answers[i]) return false;
    }
    if (many.digests) {
        std::uint32_t out[max_lanes][8];
        many.digests(out, messages.in, answer_blocks);
        for (std::size_t i = 0; i < widest(many.lanes); ++i)
            if (big_endian(out[i]) != sha256_answers[i]) return false;
    }
    return right(many.ahead, sha256_ahead_answers, Algorithm::sha256,
                 [](std::uint32_t state[8], const std::uint8_t* block, std::uint32_t) {
                     sha256_stream_portable(state, block, 1);
                 });
}

bool right(const Blake3Kernels& kernels) {
    const Messages messages(false);
    const auto wrong = [](const std::uint32_t* cv, std::size_t i) { return big_endian(cv) != blake3_answers[i]; };
    for (std::size_t i = 0; i < max_lanes; ++i) {
        std::uint32_t cv[8];
        std::memcpy(cv, iv, sizeof cv);
        kernels.compress(cv, messages.in[i], 0, 64, chunk_start);
        kernels.compress(cv, messages.in[i] + 64, 0, 64, 0);
        std::uint8_t out[64];
        kernels.output(cv, messages.in[i] + 128, 0, 1, chunk_end | root, out);
        kernels.compress(cv, messages.in[i] + 128, 0, 1, chunk_end | root);
        if (wrong(cv, i) || std::memcmp(cv, out, sizeof cv) != 0) return false;
        std::memcpy(cv, iv, sizeof cv);
        kernels.stream(cv, messages.in[i], 2, 0, 0, chunk_start);
        kernels.compress(cv, messages.in[i] + 128, 0, 1, chunk_end | root);
        if (wrong(cv, i)) return false;
    }
    const std::uint64_t counter[max_lanes] = {};
    std::uint32_t length[max_lanes], flags[max_lanes];
    for (std::size_t i = 0; i < max_lanes; ++i) length[i] = 1, flags[i] = chunk_end | root;
    for (const auto& row : kernels.lanes) {
        if (!row.run) continue;
        std::uint32_t out[max_lanes][8];
        const Blake3Batch batch{messages.in, answer_blocks, iv, 0, counter, length, flags, 0, chunk_start, out[0]};
        row.run(&batch);
        for (std::size_t i = 0; i < row.width; ++i)
            if (wrong(out[i], i)) return false;
    }
    if (!right(kernels.ahead, blake3_ahead_answers, Algorithm::blake3,
               [&](std::uint32_t cv[8], const std::uint8_t* block, std::uint32_t flag) {
                   kernels.compress(cv, block, 0, 64, flag);
               }))
        return false;
    return right(kernels.chains, blake3_chain_answers, Algorithm::blake3,
                 [&](std::uint32_t cv[8], const std::uint8_t* block) {
                     std::memcpy(cv, iv, sizeof iv);
                     kernels.compress(cv, block, 0, 64, chunk_start);
                 });
}

bool right(PackPixels* const& pack) {
    constexpr std::size_t most = 67;
    std::uint8_t pixels[4 * most];
    for (std::size_t i = 0; i < sizeof pixels; ++i) pixels[i] = static_cast<std::uint8_t>(i % 251);
    for (std::size_t count = 0; count <= most; ++count) {
        std::uint8_t out[3 * most + 1] = {};
        pack(pixels, out, count);
        for (std::size_t i = 0; i < sizeof out; ++i)
            if (out[i] != (i < 3 * count ? pixels[i / 3 * 4 + i % 3] : 0)) return false;
    }
    return true;
}

[[noreturn]] void fail(std::string_view operation, std::string_view isa) {
    throw std::runtime_error("mmkey: the " + std::string(operation) + " kernel '" + std::string(isa) +
                             "' gives wrong digests on this CPU");
}

/// The row to use, and a line about it in `choices`.
template <typename RowType, std::size_t n>
const RowType& choose(const RowType (&rows)[n], std::string_view forced, Algorithm algorithm,
                      std::string_view operation, std::vector<KernelChoice>& choices) {
    KernelChoice choice{algorithm, operation, {}, {}};
    const RowType* chosen = nullptr;
    for (const auto& row : rows) {
        if (!row.runs(cpu_features())) continue;
        if (std::find(choice.available.begin(), choice.available.end(), row.isa) != choice.available.end()) continue;
        choice.available.push_back(row.isa);
        if (!chosen || row.isa == forced) chosen = &row;
    }
    if (!right(chosen->kernels)) fail(operation, chosen->isa);
    choice.kernel = chosen->isa;
    choices.push_back(std::move(choice));
    return *chosen;
}

}  // namespace

Dispatch select_kernels(std::string_view forced) {
    Dispatch table{};
    const Sha256Serial& serial = choose(stream_rows, forced, Algorithm::sha256, "stream", table.choices).kernels;
    table.sha256.stream = serial.stream;
    table.sha256.chains = serial.chains;
    const Sha256Many& many = choose(many_rows, forced, Algorithm::sha256, "many", table.choices).kernels;
    table.sha256.lanes = many.lanes;
    table.sha256.digests = many.digests;
    table.sha256.ahead = many.ahead;
    table.blake3 = choose(blake3_rows, forced, Algorithm::blake3, "all", table.choices).kernels;
    table.pack_pixels = choose(pixels_rows, forced, Algorithm::sha256, "pixels", table.choices).kernels;
    table.choices.push_back(table.choices.back());  // of both algorithms
    table.choices.back().algorithm = Algorithm::blake3;
    if (!forced.empty()) {
        std::string known;
        bool found = false;
        for (const auto& choice : table.choices) {
            for (const auto isa : choice.available) {
                found = found || isa == forced;
                if (known.find(isa) == std::string::npos) known += (known.empty() ? "" : ", ") + std::string(isa);
            }
        }
        if (!found) {
            throw std::runtime_error("MMKEY_FORCE_KERNEL: '" + std::string(forced) +
                                     "' is no kernel that this CPU and build run; these are: " + known);
        }
    }
    return table;
}

constinit std::atomic<const Dispatch*> chosen{nullptr};

const Dispatch& choose_kernels() {
    const char* variable = std::getenv("MMKEY_FORCE_KERNEL");
    static const Dispatch table = select_kernels(variable ? variable : "");
    chosen.store(&table, std::memory_order_release);
    return table;
}

void check_all_kernels() {
    const auto check = [](const auto& rows, std::string_view operation) {
        for (const auto& row : rows)
            if (row.runs(cpu_features()) && !right(row.kernels)) fail(operation, row.isa);
    };
    check(stream_rows, "SHA-256 stream");
    check(many_rows, "SHA-256 many");
    check(blake3_rows, "BLAKE3");
    check(pixels_rows, "pixels");
}

}  // namespace mmkey::detail
