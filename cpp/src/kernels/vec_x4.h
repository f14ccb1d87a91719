// 4 lanes: xmm with SSE4.1.
#include "lanes.h"

#define V __m128i
#define LANES 4
#define LOAD(p) LOAD128(p)
#define STORE(p, x) STORE128(p, x)
#define SET1(x) _mm_set1_epi32(static_cast<int>(x))
#define ADD(a, b) _mm_add_epi32(a, b)
#define XOR(a, b) _mm_xor_si128(a, b)
#define ROTR(x, n)                                  \
    ((n) == 16  ? _mm_shuffle_epi8(x, MMKEY_ROTR16) \
     : (n) == 8 ? _mm_shuffle_epi8(x, MMKEY_ROTR8)  \
                : _mm_or_si128(_mm_srli_epi32(x, n), _mm_slli_epi32(x, 32 - (n))))
#define UNPACKLO32(a, b) _mm_unpacklo_epi32(a, b)
#define UNPACKHI32(a, b) _mm_unpackhi_epi32(a, b)
#define UNPACKLO64(a, b) _mm_unpacklo_epi64(a, b)
#define UNPACKHI64(a, b) _mm_unpackhi_epi64(a, b)
#define GATHER(p, j, at) LOAD128((p)[j] + (at))
#define SCATTER(p, stride, j, x) STORE128((p) + (stride) * (j), x)
