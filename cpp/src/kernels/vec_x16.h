// 16 lanes: zmm with AVX-512. See lanes.h for the vocabulary.
#include "lanes.h"

#define V __m512i
#define LANES 16
#define LOAD(p) _mm512_loadu_si512(p)
#define STORE(p, x) _mm512_storeu_si512(p, x)
#define SET1(x) _mm512_set1_epi32(static_cast<int>(x))
#define ADD(a, b) _mm512_add_epi32(a, b)
#define XOR(a, b) _mm512_xor_si512(a, b)
#define XOR3(a, b, c) _mm512_ternarylogic_epi32(a, b, c, 0x96)
#define CHOOSE(e, f, g) _mm512_ternarylogic_epi32(e, f, g, 0xca)
#define MAJORITY(a, b, c) _mm512_ternarylogic_epi32(a, b, c, 0xe8)
#define ROTR(x, n) _mm512_ror_epi32(x, n)
#define SHR(x, n) _mm512_srli_epi32(x, n)
#define UNPACKLO32(a, b) _mm512_unpacklo_epi32(a, b)
#define UNPACKHI32(a, b) _mm512_unpackhi_epi32(a, b)
#define UNPACKLO64(a, b) _mm512_unpacklo_epi64(a, b)
#define UNPACKHI64(a, b) _mm512_unpackhi_epi64(a, b)
#define BYTESWAP(x) _mm512_shuffle_epi8(x, _mm512_broadcast_i32x4(MMKEY_BIG_ENDIAN))
#define GATHER(p, j, at)                                                                                     \
    _mm512_inserti32x4(_mm512_inserti32x4(_mm512_inserti32x4(_mm512_castsi128_si512(LOAD128((p)[j] + (at))), \
                                                             LOAD128((p)[(j) + 4] + (at)), 1),               \
                                          LOAD128((p)[(j) + 8] + (at)), 2),                                  \
                       LOAD128((p)[(j) + 12] + (at)), 3)
#define SCATTER(p, stride, j, x)                                                 \
    do {                                                                 \
        STORE128((p) + (stride) * (j), _mm512_castsi512_si128(x));              \
        STORE128((p) + (stride) * ((j) + 4), _mm512_extracti32x4_epi32(x, 1));  \
        STORE128((p) + (stride) * ((j) + 8), _mm512_extracti32x4_epi32(x, 2));  \
        STORE128((p) + (stride) * ((j) + 12), _mm512_extracti32x4_epi32(x, 3)); \
    } while (0)
