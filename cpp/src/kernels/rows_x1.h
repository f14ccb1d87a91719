// One stream in rows: xmm with SSE4.1, and the rotations of AVX-512VL where the file is compiled for it.
#include "vec_x4.h"

#undef WIDTH
#undef SHUFFLE
#undef SHUFFLE2
#undef SHUFFLE8
#undef SET4
#undef OR
#undef PARTS
#undef STORE_PARTS

#ifdef __AVX512VL__
#undef ROTR
#define ROTR(x, n) _mm_ror_epi32(x, n)
#endif
#define WIDTH 1
#define SHUFFLE(x, imm) _mm_shuffle_epi32(x, imm)
#define SHUFFLE2(a, b, imm) _mm_castps_si128(_mm_shuffle_ps(_mm_castsi128_ps(a), _mm_castsi128_ps(b), imm))
#define SHUFFLE8(x, control) _mm_shuffle_epi8(x, control)
#define SET4(a, b, c, d) _mm_setr_epi32(int(a), int(b), int(c), int(d))
#define OR(a, b) _mm_or_si128(a, b)
#define PARTS(AT) LOAD128(AT(0))
#define STORE_PARTS(AT, x) STORE128(AT(0), x)
