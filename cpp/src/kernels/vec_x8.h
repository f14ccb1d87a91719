// 8 lanes: ymm, with the rotations and three-operand logic of AVX-512VL where the file is compiled for it.
#include "lanes.h"

#define V __m256i
#define LANES 8
#define LOAD(p) _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))
#define STORE(p, x) _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), x)
#define SET1(x) _mm256_set1_epi32(static_cast<int>(x))
#define ADD(a, b) _mm256_add_epi32(a, b)
#define XOR(a, b) _mm256_xor_si256(a, b)
#define SHR(x, n) _mm256_srli_epi32(x, n)
#define UNPACKLO32(a, b) _mm256_unpacklo_epi32(a, b)
#define UNPACKHI32(a, b) _mm256_unpackhi_epi32(a, b)
#define UNPACKLO64(a, b) _mm256_unpacklo_epi64(a, b)
#define UNPACKHI64(a, b) _mm256_unpackhi_epi64(a, b)
#define BYTESWAP(x) _mm256_shuffle_epi8(x, _mm256_broadcastsi128_si256(MMKEY_BIG_ENDIAN))
#define GATHER(p, j, at) \
    _mm256_inserti128_si256(_mm256_castsi128_si256(LOAD128((p)[j] + (at))), LOAD128((p)[(j) + 4] + (at)), 1)
#define SCATTER(p, stride, j, x)                                               \
    do {                                                               \
        STORE128((p) + (stride) * (j), _mm256_castsi256_si128(x));            \
        STORE128((p) + (stride) * ((j) + 4), _mm256_extracti128_si256(x, 1)); \
    } while (0)

#ifdef __AVX512VL__
#define XOR3(a, b, c) _mm256_ternarylogic_epi32(a, b, c, 0x96)
#define CHOOSE(e, f, g) _mm256_ternarylogic_epi32(e, f, g, 0xca)
#define MAJORITY(a, b, c) _mm256_ternarylogic_epi32(a, b, c, 0xe8)
#define ROTR(x, n) _mm256_ror_epi32(x, n)
#else
#define XOR3(a, b, c) XOR(a, XOR(b, c))
#define CHOOSE(e, f, g) XOR(g, _mm256_and_si256(e, XOR(f, g)))
#define MAJORITY(a, b, c) XOR(b, _mm256_and_si256(XOR(a, b), XOR(b, c)))
#define ROTR(x, n)                                                                  \
    ((n) == 16  ? _mm256_shuffle_epi8(x, _mm256_broadcastsi128_si256(MMKEY_ROTR16)) \
     : (n) == 8 ? _mm256_shuffle_epi8(x, _mm256_broadcastsi128_si256(MMKEY_ROTR8))  \
                : _mm256_or_si256(_mm256_srli_epi32(x, n), _mm256_slli_epi32(x, 32 - (n))))
#endif
