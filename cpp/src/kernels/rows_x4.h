// Four streams in rows: zmm with AVX-512.
#include "vec_x16.h"

#undef WIDTH
#undef SHUFFLE
#undef SHUFFLE2
#undef SHUFFLE8
#undef SET4
#undef OR
#undef PARTS
#undef STORE_PARTS

#define WIDTH 4
#define SHUFFLE(x, imm) _mm512_shuffle_epi32(x, static_cast<_MM_PERM_ENUM>(imm))
#define SHUFFLE2(a, b, imm) _mm512_castps_si512(_mm512_shuffle_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), imm))
#define SHUFFLE8(x, control) _mm512_shuffle_epi8(x, control)
#define SET4(a, b, c, d) _mm512_broadcast_i32x4(_mm_setr_epi32(int(a), int(b), int(c), int(d)))
#define OR(a, b) _mm512_or_si512(a, b)
#define PARTS(AT)                                                                                         \
    _mm512_inserti32x4(                                                                                   \
        _mm512_inserti32x4(_mm512_inserti32x4(_mm512_castsi128_si512(LOAD128(AT(0))), LOAD128(AT(1)), 1), \
                           LOAD128(AT(2)), 2),                                                            \
        LOAD128(AT(3)), 3)
#define STORE_PARTS(AT, x)                                  \
    do {                                                    \
        STORE128(AT(0), _mm512_castsi512_si128(x));         \
        STORE128(AT(1), _mm512_extracti32x4_epi32(x, 1));   \
        STORE128(AT(2), _mm512_extracti32x4_epi32(x, 2));   \
        STORE128(AT(3), _mm512_extracti32x4_epi32(x, 3));   \
    } while (0)
