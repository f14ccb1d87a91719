#include "kernels.h"

#include <immintrin.h>

namespace mmkey::kernel {

namespace {

/// The bytes that count of 16 pixels, in the first 48.
inline __m512i packed(__m512i pixels) {
    const __m512i drop = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1));
    const __m512i join = _mm512_setr_epi32(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 3, 7, 11, 15);
    return _mm512_permutexvar_epi32(join, _mm512_shuffle_epi8(pixels, drop));
}

}  // namespace

void pixels_pack_avx512(const uint8_t* in, uint8_t* out, size_t count) {
    for (; count >= 16; count -= 16, in += 64, out += 48) {
        __builtin_prefetch(in + 8192);  // the hardware looks no further than the page
        _mm512_mask_storeu_epi32(out, 0x0fff, packed(_mm512_loadu_si512(in)));
    }
    const __mmask16 pixels = static_cast<__mmask16>((1u << count) - 1);
    const __mmask64 bytes = (1ull << (3 * count)) - 1;
    _mm512_mask_storeu_epi8(out, bytes, packed(_mm512_maskz_loadu_epi32(pixels, in)));
}

}  // namespace mmkey::kernel
