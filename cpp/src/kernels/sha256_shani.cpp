#include <immintrin.h>

#include "constants.h"
#include "kernels.h"

// One function serves one and two streams: `lanes` is a constant wherever it is inlined. sha256rnds2 has a latency of
// four cycles and a throughput of two or three, so that two interleaved streams gain a fifth and a third would gain nothing.
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

/// All 64 rounds of each stream's w, and the sum with the state before.
MMKEY_INLINE void compress(Stream* s, const int lanes) {
    __m128i abef[2], cdgh[2];
    for (int n = 0; n < lanes; ++n) abef[n] = s[n].abef, cdgh[n] = s[n].cdgh;
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
        const __m128i k = load(sha256_k + 4 * i);
        __m128i t[2];
        for (int n = 0; n < lanes; ++n) {
            t[n] = _mm_add_epi32(s[n].w[i & 3], k);
            s[n].cdgh = _mm_sha256rnds2_epu32(s[n].cdgh, s[n].abef, t[n]);
        }
        for (int n = 0; n < lanes; ++n)
            s[n].abef = _mm_sha256rnds2_epu32(s[n].abef, s[n].cdgh, _mm_shuffle_epi32(t[n], 0x0e));
        if (i >= 12) continue;
        for (int n = 0; n < lanes; ++n) {  // the words of four rounds that come 16 rounds later
            __m128i* w = s[n].w;
            w[i & 3] = _mm_add_epi32(_mm_sha256msg1_epu32(w[i & 3], w[(i + 1) & 3]),
                                     _mm_alignr_epi8(w[(i + 3) & 3], w[(i + 2) & 3], 4));
            w[i & 3] = _mm_sha256msg2_epu32(w[i & 3], w[(i + 3) & 3]);
        }
    }
    for (int n = 0; n < lanes; ++n)
        s[n].abef = _mm_add_epi32(s[n].abef, abef[n]), s[n].cdgh = _mm_add_epi32(s[n].cdgh, cdgh[n]);
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

MMKEY_INLINE void chain(const ChainLink* const* links, size_t count, const uint8_t* const* parents, uint8_t* const* out,
                        const int lanes) {
    Stream before[2], s[2];
    for (int n = 0; n < lanes; ++n)
        load_state(before[n], big_endian(load(parents[n])), big_endian(load(parents[n] + 16)));
    for (size_t i = 0; i < count; ++i) {
        for (int n = 0; n < lanes; ++n) {
            const ChainLink& link = links[n][i];
            load_state(s[n], load(link.state), load(link.state + 4));
            const auto& from = placement.from[link.offset];
            for (int j = 0; j < 4; ++j) {
                const __m128i placed = _mm_or_si128(_mm_shuffle_epi8(before[n].abef, load(from[j][0])),
                                                    _mm_shuffle_epi8(before[n].cdgh, load(from[j][1])));
                s[n].w[j] = _mm_or_si128(placed, big_endian(load(link.tail + 16 * j)));
            }
        }
        compress(s, lanes);
        for (int n = 0; n < lanes; ++n) {
            before[n] = s[n];
            store(out[n] + 32 * i, big_endian(abcd(s[n])));
            store(out[n] + 32 * i + 16, big_endian(efgh(s[n])));
        }
    }
}

}  // namespace

void sha256_stream_shani(uint32_t state[8], const uint8_t* blocks, size_t count) {
    Stream s;
    load_state(s, load(state), load(state + 4));
    for (; count != 0; --count, blocks += 64) {
        for (int j = 0; j < 4; ++j) s.w[j] = big_endian(load(blocks + 16 * j));
        compress(&s, 1);
    }
    store(state, abcd(s));
    store(state + 4, efgh(s));
}

void sha256_lanes2_shani(uint32_t (*state)[8], const uint8_t* const* in, size_t count) {
    Stream s[2];
    for (int n = 0; n < 2; ++n) load_state(s[n], load(state[n]), load(state[n] + 4));
    for (size_t at = 0; count != 0; --count, at += 64) {
        for (int n = 0; n < 2; ++n)
            for (int j = 0; j < 4; ++j) s[n].w[j] = big_endian(load(in[n] + at + static_cast<size_t>(16 * j)));
        compress(s, 2);
    }
    for (int n = 0; n < 2; ++n) store(state[n], abcd(s[n])), store(state[n] + 4, efgh(s[n]));
}

void sha256_chain1_shani(const ChainLink* const* links, size_t count, const uint8_t* const* parents,
                         uint8_t* const* out) {
    chain(links, count, parents, out, 1);
}

void sha256_chain2_shani(const ChainLink* const* links, size_t count, const uint8_t* const* parents,
                         uint8_t* const* out) {
    chain(links, count, parents, out, 2);
}

}  // namespace mmkey::kernel
