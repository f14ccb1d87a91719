#include <immintrin.h>

#include "constants.h"
#include "kernels.h"

namespace mmkey::kernel {

// Four rounds and, where `more`, the message words of the four that come 16 rounds later. sha256rnds2 wants the state
// as words {a, b, e, f} and {c, d, g, h}.
#define MMKEY_ROUNDS(abef, cdgh, w, i, more)                                                                              \
    do {                                                                                                                  \
        __m128i t = _mm_add_epi32(w[(i) & 3], _mm_loadu_si128(reinterpret_cast<const __m128i*>(sha256_k + 4 * (i))));     \
        cdgh = _mm_sha256rnds2_epu32(cdgh, abef, t);                                                                      \
        abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(t, 0x0e));                                             \
        if (more) {                                                                                                       \
            t = _mm_add_epi32(_mm_sha256msg1_epu32(w[(i) & 3], w[((i) + 1) & 3]),                                         \
                              _mm_alignr_epi8(w[((i) + 3) & 3], w[((i) + 2) & 3], 4));                                    \
            w[(i) & 3] = _mm_sha256msg2_epu32(t, w[((i) + 3) & 3]);                                                       \
        }                                                                                                                 \
    } while (0)

#define MMKEY_LOAD_BLOCK(w, p)                                                                                       \
    do {                                                                                                             \
        for (int j = 0; j < 4; ++j)                                                                                  \
            w[j] = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>((p) + 16 * j)), big_endian);    \
    } while (0)

void sha256_stream_shani(uint32_t state[8], const uint8_t* blocks, size_t count) {
    const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    const __m128i abcd = _mm_loadu_si128(reinterpret_cast<const __m128i*>(state));
    const __m128i efgh = _mm_loadu_si128(reinterpret_cast<const __m128i*>(state + 4));
    __m128i abef = _mm_shuffle_epi32(_mm_unpacklo_epi64(abcd, efgh), 0x1b);
    __m128i cdgh = _mm_shuffle_epi32(_mm_unpackhi_epi64(abcd, efgh), 0x1b);
    for (; count != 0; --count, blocks += 64) {
        const __m128i abef0 = abef, cdgh0 = cdgh;
        __m128i w[4];
        MMKEY_LOAD_BLOCK(w, blocks);
#pragma GCC unroll 16
        for (int i = 0; i < 16; ++i) MMKEY_ROUNDS(abef, cdgh, w, i, i < 12);
        abef = _mm_add_epi32(abef, abef0);
        cdgh = _mm_add_epi32(cdgh, cdgh0);
    }
    abef = _mm_shuffle_epi32(abef, 0x1b);
    cdgh = _mm_shuffle_epi32(cdgh, 0x1b);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(state), _mm_unpacklo_epi64(abef, cdgh));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(state + 4), _mm_unpackhi_epi64(abef, cdgh));
}

}  // namespace mmkey::kernel
