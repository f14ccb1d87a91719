#include "hash_dispatch.h"

#include "mmkey/cpu.h"

#include "kernels/constants.h"

#include <bit>
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

using StreamRow = Row<Sha256Stream*>;
using ManyRow = Row<LaneRows<Sha256Lanes>>;
using Blake3Row = Row<Blake3Kernels>;

// Widest first: the first row that this CPU runs is taken.

const StreamRow stream_rows[] = {
#ifdef MMKEY_X86_KERNELS
    {"shani", [](const CpuFeatures& cpu) { return cpu.shani; }, sha256_stream_shani},
#endif
    {"portable", always, sha256_stream_portable},
};

const ManyRow many_rows[] = {
    {"portable", always, {}},
};

const Blake3Row blake3_rows[] = {
    {"portable", always, {blake3_compress_portable, blake3_output_portable, {}}},
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

bool right(Sha256Stream* stream) {
    const Messages messages(true);
    for (std::size_t i = 0; i < max_lanes; ++i) {
        std::uint32_t state[8];
        std::memcpy(state, iv, sizeof state);
        stream(state, messages.in[i], answer_blocks);
        if (state[0] != sha256_answers[i]) return false;
    }
    return true;
}

bool right(const LaneRows<Sha256Lanes>& rows) {
    const Messages messages(true);
    for (const auto& row : rows) {
        if (!row.run) continue;
        std::uint32_t state[8 * max_lanes];
        for (std::size_t i = 0; i < 8 * row.width; ++i) state[i] = iv[i / row.width];
        row.run(state, messages.in, answer_blocks);
        for (std::size_t i = 0; i < row.width; ++i)
            if (state[i] != sha256_answers[i]) return false;
    }
    return true;
}

bool right(const Blake3Kernels& kernels) {
    const Messages messages(false);
    const auto wrong = [](const std::uint32_t* cv, std::size_t i) {
        std::uint8_t bytes[4];
        std::memcpy(bytes, cv, 4);
        return (std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8 |
                bytes[3]) != blake3_answers[i];
    };
    for (std::size_t i = 0; i < max_lanes; ++i) {
        std::uint32_t cv[8];
        std::memcpy(cv, iv, sizeof cv);
        kernels.compress(cv, messages.in[i], 0, 64, chunk_start);
        kernels.compress(cv, messages.in[i] + 64, 0, 64, 0);
        std::uint8_t out[64];
        kernels.output(cv, messages.in[i] + 128, 0, 1, chunk_end | root, out);
        kernels.compress(cv, messages.in[i] + 128, 0, 1, chunk_end | root);
        if (wrong(cv, i) || std::memcmp(cv, out, sizeof cv) != 0) return false;
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
        choice.available.push_back(row.isa);
        if (!chosen || row.isa == forced) chosen = &row;
    }
    if (!right(chosen->kernels)) fail(operation, chosen->isa);
    choice.kernel = chosen->isa;
    choices.push_back(std::move(choice));
    return *chosen;
}

Dispatch select() {
    const char* variable = std::getenv("MMKEY_FORCE_KERNEL");
    const std::string_view forced = variable ? variable : "";
    Dispatch table{};
    table.sha256.stream = choose(stream_rows, forced, Algorithm::sha256, "stream", table.choices).kernels;
    table.sha256.lanes = choose(many_rows, forced, Algorithm::sha256, "many", table.choices).kernels;
    table.blake3 = choose(blake3_rows, forced, Algorithm::blake3, "all", table.choices).kernels;
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

}  // namespace

const Dispatch& dispatch() {
    static const Dispatch table = select();
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
}

}  // namespace mmkey::detail
