// The vocabulary in which sha256_lanes.inc and blake3_lanes.inc are written once for every width. A vec_*.h gives it as
// macros; several may be included in turn.
//
//   V, LANES              a vector: one 32-bit word of each of LANES streams
//   GATHER(p, j, at)      16 bytes at p[i] + at for i = j, j + 4, j + 8, ...: each in a 128-bit part of its own
//   SCATTER(p, stride, j, x)   the reverse: part k of x to words stride * (j + 4 * k) ... of p
//   TRANSPOSE4(a, b, c, d)   of GATHERs with j = 0, 1, 2, 3 makes the vectors of four successive words, and back again
//
// 128-bit inserts from memory and unpacks within the parts: cheaper than whole-register loads and cross-part shuffles.
#undef V
#undef LANES
#undef LOAD
#undef STORE
#undef SET1
#undef ADD
#undef XOR
#undef XOR3
#undef CHOOSE
#undef MAJORITY
#undef ROTR
#undef SHR
#undef UNPACKLO32
#undef UNPACKHI32
#undef UNPACKLO64
#undef UNPACKHI64
#undef BYTESWAP
#undef GATHER
#undef SCATTER

#ifndef MMKEY_KERNELS_LANES_H
#define MMKEY_KERNELS_LANES_H

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#define LOAD128(p) _mm_loadu_si128(reinterpret_cast<const __m128i*>(p))
#define STORE128(p, x) _mm_storeu_si128(reinterpret_cast<__m128i*>(p), x)
#define MMKEY_BIG_ENDIAN _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203)
#define MMKEY_ROTR16 _mm_set_epi64x(0x0d0c0f0e09080b0a, 0x0504070601000302)
#define MMKEY_ROTR8 _mm_set_epi64x(0x0c0f0e0d080b0a09, 0x0407060500030201)
#else
#include <arm_neon.h>
#endif

#define TRANSPOSE4(a, b, c, d)                                    \
    do {                                                          \
        const V lo01 = UNPACKLO32(a, b), hi01 = UNPACKHI32(a, b); \
        const V lo23 = UNPACKLO32(c, d), hi23 = UNPACKHI32(c, d); \
        a = UNPACKLO64(lo01, lo23);                               \
        b = UNPACKHI64(lo01, lo23);                               \
        c = UNPACKLO64(hi01, hi23);                               \
        d = UNPACKHI64(hi01, hi23);                               \
    } while (0)

/// The 16 words of a block of each stream.
#define LOAD_BLOCKS(m, p, at)                                                       \
    do {                                                                            \
        for (size_t q = 0; q < 4; ++q) {                                            \
            for (size_t j = 0; j < 4; ++j) m[4 * q + j] = GATHER(p, j, (at) + 16 * q); \
            TRANSPOSE4(m[4 * q], m[4 * q + 1], m[4 * q + 2], m[4 * q + 3]);         \
        }                                                                           \
    } while (0)

/// The eight words of each stream's state, which lie `stride` words apart.
#define LOAD_STATES(s, p, stride)                                                                        \
    do {                                                                                                 \
        const uint8_t* from[LANES];                                                                      \
        for (size_t i = 0; i < LANES; ++i) from[i] = reinterpret_cast<const uint8_t*>((p) + (stride)*i); \
        for (int j = 0; j < 4; ++j) s[j] = GATHER(from, j, 0), s[j + 4] = GATHER(from, j, 16);           \
        TRANSPOSE4(s[0], s[1], s[2], s[3]);                                                              \
        TRANSPOSE4(s[4], s[5], s[6], s[7]);                                                              \
    } while (0)

#define STORE_STATES(p, s, stride)                 \
    do {                                           \
        TRANSPOSE4(s[0], s[1], s[2], s[3]);        \
        TRANSPOSE4(s[4], s[5], s[6], s[7]);        \
        for (size_t j = 0; j < 4; ++j) {           \
            SCATTER(p, stride, j, s[j]);           \
            SCATTER((p) + 4, stride, j, s[j + 4]); \
        }                                          \
    } while (0)

#endif
