#include <arm_neon.h>

#include "constants.h"
#include "kernels.h"

// One function serves one and two streams: `lanes` is a constant wherever it is inlined.
#define MMKEY_INLINE static inline __attribute__((always_inline))

namespace mmkey::kernel {

namespace {

struct Stream {
    uint32x4_t abcd, efgh;
    uint32x4_t w[4];
};

MMKEY_INLINE void load_block(Stream& s, const uint8_t* block) {
    for (int j = 0; j < 4; ++j) s.w[j] = vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(block + 16 * j)));
}

/// All 64 rounds of each stream's w, and the sum with the state before.
MMKEY_INLINE void compress(Stream* s, const int lanes) {
    uint32x4_t abcd[2], efgh[2];
    for (int n = 0; n < lanes; ++n) abcd[n] = s[n].abcd, efgh[n] = s[n].efgh;
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
        const uint32x4_t k = vld1q_u32(sha256_k + 4 * i);
        for (int n = 0; n < lanes; ++n) {
            uint32x4_t* w = s[n].w;
            const uint32x4_t t = vaddq_u32(w[i & 3], k);
            const uint32x4_t before = s[n].abcd;
            s[n].abcd = vsha256hq_u32(before, s[n].efgh, t);
            s[n].efgh = vsha256h2q_u32(s[n].efgh, before, t);
            if (i < 12)  // the words of four rounds that come 16 rounds later
                w[i & 3] = vsha256su1q_u32(vsha256su0q_u32(w[i & 3], w[(i + 1) & 3]), w[(i + 2) & 3], w[(i + 3) & 3]);
        }
    }
    for (int n = 0; n < lanes; ++n) {
        s[n].abcd = vaddq_u32(s[n].abcd, abcd[n]);
        s[n].efgh = vaddq_u32(s[n].efgh, efgh[n]);
    }
}

}  // namespace

void sha256_stream_armsha2(uint32_t state[8], const uint8_t* blocks, size_t count) {
    Stream s;
    s.abcd = vld1q_u32(state);
    s.efgh = vld1q_u32(state + 4);
    for (; count != 0; --count, blocks += 64) {
        load_block(s, blocks);
        compress(&s, 1);
    }
    vst1q_u32(state, s.abcd);
    vst1q_u32(state + 4, s.efgh);
}

void sha256_lanes2_armsha2(uint32_t (*state)[8], const uint8_t* const* in, size_t count) {
    Stream s[2];
    for (int n = 0; n < 2; ++n) s[n].abcd = vld1q_u32(state[n]), s[n].efgh = vld1q_u32(state[n] + 4);
    for (size_t at = 0; count != 0; --count, at += 64) {
        for (int n = 0; n < 2; ++n) load_block(s[n], in[n] + at);
        compress(s, 2);
    }
    for (int n = 0; n < 2; ++n) vst1q_u32(state[n], s[n].abcd), vst1q_u32(state[n] + 4, s[n].efgh);
}

}  // namespace mmkey::kernel
