#include "kernels.h"

#include <immintrin.h>

namespace mmkey::kernel {

void pixels_pack_sse41(const uint8_t* in, uint8_t* out, size_t count) {
    const __m128i drop = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
    for (; count >= 16; count -= 16, in += 64, out += 48) {
        const __m128i* from = reinterpret_cast<const __m128i*>(in);
        __m128i* to = reinterpret_cast<__m128i*>(out);
        const __m128i a = _mm_shuffle_epi8(_mm_loadu_si128(from), drop);
        const __m128i b = _mm_shuffle_epi8(_mm_loadu_si128(from + 1), drop);
        const __m128i c = _mm_shuffle_epi8(_mm_loadu_si128(from + 2), drop);
        const __m128i d = _mm_shuffle_epi8(_mm_loadu_si128(from + 3), drop);
        _mm_storeu_si128(to, _mm_or_si128(a, _mm_slli_si128(b, 12)));
        _mm_storeu_si128(to + 1, _mm_or_si128(_mm_srli_si128(b, 4), _mm_slli_si128(c, 8)));
        _mm_storeu_si128(to + 2, _mm_or_si128(_mm_srli_si128(c, 8), _mm_slli_si128(d, 4)));
    }
    pixels_pack_portable(in, out, count);
}

}  // namespace mmkey::kernel
