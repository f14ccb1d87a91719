// What every kernel on SHA-NI shares: a stream in the registers that the instructions want, and a parent put in its place.
#pragma once

#include <immintrin.h>

#include "constants.h"
#include "kernels.h"

#define MMKEY_INLINE static inline __attribute__((always_inline))

namespace mmkey::kernel {

namespace {

struct Stream {
    __m128i abef, cdgh;  // the order of words that sha256rnds2 wants, from the high end down
    __m128i w[4];
};

MMKEY_INLINE __m128i load(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
MMKEY_INLINE void store(void* p, __m128i x) { _mm_storeu_si128(static_cast<__m128i*>(p), x); }
MMKEY_INLINE __m128i big_endian(__m128i x) {
    return _mm_shuffle_epi8(x, _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203));
}

MMKEY_INLINE void load_state(Stream& s, __m128i abcd, __m128i efgh) {
    s.abef = _mm_shuffle_epi32(_mm_unpacklo_epi64(abcd, efgh), 0x1b);
    s.cdgh = _mm_shuffle_epi32(_mm_unpackhi_epi64(abcd, efgh), 0x1b);
}

MMKEY_INLINE __m128i abcd(const Stream& s) { return _mm_shuffle_epi32(_mm_unpackhi_epi64(s.cdgh, s.abef), 0x1b); }
MMKEY_INLINE __m128i efgh(const Stream& s) { return _mm_shuffle_epi32(_mm_unpacklo_epi64(s.cdgh, s.abef), 0x1b); }

/// Rounds 4 * i and 4 * i + 1; gives what the two after them want.
MMKEY_INLINE __m128i two_rounds(Stream& s, const int i) {
    const __m128i t = _mm_add_epi32(s.w[i & 3], load(sha256_k + 4 * i));
    s.cdgh = _mm_sha256rnds2_epu32(s.cdgh, s.abef, t);
    return t;
}

MMKEY_INLINE void two_more_rounds(Stream& s, __m128i t) {
    s.abef = _mm_sha256rnds2_epu32(s.abef, s.cdgh, _mm_shuffle_epi32(t, 0x0e));
}

/// The words of the four rounds that come 16 rounds after rounds 4 * i to 4 * i + 3.
MMKEY_INLINE void expand(Stream& s, const int i) {
    __m128i* w = s.w;
    w[i & 3] = _mm_add_epi32(_mm_sha256msg1_epu32(w[i & 3], w[(i + 1) & 3]),
                             _mm_alignr_epi8(w[(i + 3) & 3], w[(i + 2) & 3], 4));
    w[i & 3] = _mm_sha256msg2_epu32(w[i & 3], w[(i + 3) & 3]);
}

/// For each offset of a parent in its block and each 16 bytes of the block: which bytes of abef, and which of cdgh, stand
/// there once words are big-endian; 0x80 where none does.
struct Placement {
    alignas(16) uint8_t from[chain_offsets][4][2][16];

    constexpr Placement() : from{} {
        constexpr int half[8] = {0, 0, 1, 1, 0, 0, 1, 1}, place[8] = {3, 2, 3, 2, 1, 0, 1, 0};  // of words a to h
        for (int offset = 0; offset < static_cast<int>(chain_offsets); ++offset) {
            for (int byte = 0; byte < 64; ++byte) {
                uint8_t* at[2] = {&from[offset][byte / 16][0][(byte % 16) ^ 3],
                                  &from[offset][byte / 16][1][(byte % 16) ^ 3]};
                *at[0] = *at[1] = 0x80;
                const int of = byte - offset;
                if (of >= 0 && of < 32) *at[half[of / 4]] = static_cast<uint8_t>(4 * place[of / 4] + 3 - of % 4);
            }
        }
    }
};

constexpr Placement placement;

/// The last block of a link with its parent in place, and the state before it.
MMKEY_INLINE void load_link(Stream& s, const ChainLink& link, const Stream& parent) {
    load_state(s, load(link.state), load(link.state + 4));
    const auto& from = placement.from[link.offset];
    for (int j = 0; j < 4; ++j) {
        const __m128i placed = _mm_or_si128(_mm_shuffle_epi8(parent.abef, load(from[j][0])),
                                            _mm_shuffle_epi8(parent.cdgh, load(from[j][1])));
        s.w[j] = _mm_or_si128(placed, big_endian(load(link.tail + 16 * j)));
    }
}

MMKEY_INLINE void load_digest(Stream& s, const uint8_t* digest) {
    load_state(s, big_endian(load(digest)), big_endian(load(digest + 16)));
}

MMKEY_INLINE void store_digest(uint8_t* out, const Stream& s) {
    store(out, big_endian(abcd(s)));
    store(out + 16, big_endian(efgh(s)));
}

}  // namespace

}  // namespace mmkey::kernel
