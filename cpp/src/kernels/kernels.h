// All kernels: one operation on raw memory each, named <algorithm>_<operation>_<isa>.
//
// A source that is compiled for an instruction set includes this, intrinsics and C integer headers only: the linker may
// keep its copy of an inline function for every CPU. No alignment is assumed of any input.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace mmkey::kernel {

constexpr size_t max_lanes = 16;

/// One link of a chain of digests, of which all but the last compression is done.
struct ChainLink {
    uint8_t tail[64];   // the last block, padded; zero where the parent goes
    uint32_t state[8];  // or chaining value, before it
    uint32_t row[4];    // BLAKE3: counter (two words), length and flags of the last block
    uint32_t offset;    // of the parent's 32 bytes in it, less than chain_offsets
};

constexpr size_t chain_offsets = 33;

/// `count` links of each of several chains: the digest of one is the parent of the next. Chain n starts from parents[n] and
/// its digests go to out[n], 32 bytes each.
using ChainLinks = void(const ChainLink* const* links, size_t count, const uint8_t* const* parents,
                        uint8_t* const* out);

/// So many links of one chain at a time where leading blocks are hashed beside the chain.
constexpr size_t stretch = 8;

/// The digests of `stretch` links of one chain, and in the time that each waits for its parent, one leading block of each of
/// as many links to come.
struct Ahead {
    const ChainLink* links;
    const uint8_t* parent;       // of the first
    uint8_t* out;                // 32 bytes a link
    ChainLink* ahead;            // whose states change
    const uint8_t* in[stretch];  // their blocks
    uint32_t flags[stretch];     // BLAKE3's, of those blocks
    bool more;                   // begin with the links' states, not with the initial one
};

using ChainAhead = void(const Ahead* job);

// ---- SHA-256 ----

/// Compresses `count` blocks of 64 bytes into `state`.
using Sha256Stream = void(uint32_t state[8], const uint8_t* blocks, size_t count);

/// `count` blocks in each of several streams: the blocks of stream i start at in[i].
using Sha256Lanes = void(uint32_t (*state)[8], const uint8_t* const* in, size_t count);

/// The digests of as many padded messages as there are lanes, `count` blocks each, as bytes.
using Sha256Digests = void(uint32_t (*out)[8], const uint8_t* const* in, size_t count);

Sha256Stream sha256_stream_portable;
Sha256Stream sha256_stream_shani;
Sha256Stream sha256_stream_armsha2;

Sha256Lanes sha256_lanes2_shani;
Sha256Lanes sha256_lanes2_armsha2;
Sha256Lanes sha256_lanes8_avx2;
Sha256Lanes sha256_lanes8_avx512;
Sha256Lanes sha256_lanes16_avx512;

Sha256Digests sha256_digests8_avx2;
Sha256Digests sha256_digests8_avx512;
Sha256Digests sha256_digests16_avx512;

ChainLinks sha256_chain1_shani;
ChainLinks sha256_chain2_shani;
ChainAhead sha256_ahead_avx512;

// ---- BLAKE3 ----

constexpr uint32_t chunk_start = 1 << 0;
constexpr uint32_t chunk_end = 1 << 1;
constexpr uint32_t parent = 1 << 2;
constexpr uint32_t root = 1 << 3;
constexpr uint32_t keyed_hash = 1 << 4;
constexpr uint32_t derive_key_context = 1 << 5;
constexpr uint32_t derive_key_material = 1 << 6;

/// One compression; the new chaining value replaces the old one.
using Blake3Compress = void(uint32_t cv[8], const uint8_t* block, uint64_t counter, uint32_t length, uint32_t flags);

/// Compresses `count` blocks of 64 bytes of one chunk into `cv`: `flags` for each, `first_flags` more for the first.
using Blake3Stream = void(uint32_t cv[8], const uint8_t* blocks, size_t count, uint64_t counter, uint32_t flags,
                          uint32_t first_flags);

/// One compression, all 64 bytes of its output.
using Blake3Output = void(const uint32_t cv[8], const uint8_t* block, uint64_t counter, uint32_t length, uint32_t flags,
                          uint8_t out[64]);

/// Equally many blocks in each lane. Every block but the last is 64 bytes long.
struct Blake3Batch {
    const uint8_t* const* in;     // where each lane's blocks start
    size_t blocks;                // at least 1
    const uint32_t* cv;           // the chaining value to start from
    size_t cv_stride;             // words from one lane's to the next: 0 where all start from the same
    const uint64_t* counter;      // for each lane
    const uint32_t* last_length;  // of each lane's last block
    const uint32_t* last_flags;   // for each lane, more flags of its last block
    uint32_t flags;               // of every block
    uint32_t first_flags;         // more flags of the first
    uint32_t* out;                // [lanes][8] chaining values; may be where they came from
};

using Blake3Lanes = void(const Blake3Batch* batch);

Blake3Compress blake3_compress_portable;
Blake3Compress blake3_compress_sse41;
Blake3Compress blake3_compress_avx512;

Blake3Stream blake3_stream_portable;
Blake3Stream blake3_stream_sse41;
Blake3Stream blake3_stream_avx512;

Blake3Output blake3_output_portable;
Blake3Output blake3_output_sse41;
Blake3Output blake3_output_avx512;

ChainLinks blake3_chain1_sse41;
ChainLinks blake3_chain1_avx512;
ChainLinks blake3_chain4_avx512;
ChainAhead blake3_ahead_avx512;

Blake3Lanes blake3_lanes4_sse41;
Blake3Lanes blake3_lanes4_neon;
Blake3Lanes blake3_lanes4_avx512;
Blake3Lanes blake3_lanes8_avx2;
Blake3Lanes blake3_lanes8_avx512;
Blake3Lanes blake3_lanes16_avx512;

// ---- pixels ----

/// The first three bytes of each of `count` pixels of four: reads 4 * count bytes, writes 3 * count, no others.
using PackPixels = void(const uint8_t* in, uint8_t* out, size_t count);

PackPixels pixels_pack_portable;
PackPixels pixels_pack_sse41;
PackPixels pixels_pack_avx512;
PackPixels pixels_pack_neon;

}  // namespace mmkey::kernel
