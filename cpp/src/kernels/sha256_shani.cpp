#include "sha256_shani.h"

// One function serves one and two streams: `lanes` is a constant wherever it is inlined. sha256rnds2 has a latency of
// four cycles and a throughput of two or three, so that two interleaved streams gain a fifth and a third would gain nothing.

namespace mmkey::kernel {

namespace {

/// All 64 rounds of each stream's w, and the sum with the state before.
MMKEY_INLINE void compress(Stream* s, const int lanes) {
    __m128i abef[2], cdgh[2];
    for (int n = 0; n < lanes; ++n) abef[n] = s[n].abef, cdgh[n] = s[n].cdgh;
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
        __m128i t[2];
        for (int n = 0; n < lanes; ++n) t[n] = two_rounds(s[n], i);
        for (int n = 0; n < lanes; ++n) two_more_rounds(s[n], t[n]);
        if (i >= 12) continue;
        for (int n = 0; n < lanes; ++n) expand(s[n], i);
    }
    for (int n = 0; n < lanes; ++n)
        s[n].abef = _mm_add_epi32(s[n].abef, abef[n]), s[n].cdgh = _mm_add_epi32(s[n].cdgh, cdgh[n]);
}

MMKEY_INLINE void chain(const ChainLink* const* links, size_t count, const uint8_t* const* parents, uint8_t* const* out,
                        const int lanes) {
    Stream before[2], s[2];
    for (int n = 0; n < lanes; ++n) load_digest(before[n], parents[n]);
    for (size_t i = 0; i < count; ++i) {
        for (int n = 0; n < lanes; ++n) load_link(s[n], links[n][i], before[n]);
        compress(s, lanes);
        for (int n = 0; n < lanes; ++n) {
            before[n] = s[n];
            store_digest(out[n] + 32 * i, s[n]);
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
