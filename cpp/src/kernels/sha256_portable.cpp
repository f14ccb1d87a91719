#include <string.h>

#include "constants.h"
#include "kernels.h"

namespace mmkey::kernel {

namespace {

inline uint32_t rotr(uint32_t x, int n) { return x >> n | x << (32 - n); }

inline uint32_t load_be(const uint8_t* p) {
    uint32_t x;
    memcpy(&x, p, 4);
    return __builtin_bswap32(x);
}

}  // namespace

// The eight working variables stay where they are; their names move on by one a round.
#define MMKEY_ROUND(a, b, c, d, e, f, g, h, i)                                                                         \
    do {                                                                                                               \
        const uint32_t t = (h) + (rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25)) + ((g) ^ ((e) & ((f) ^ (g)))) + k[i] + w[i]; \
        (d) += t;                                                                                                      \
        (h) = t + (rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22)) + (((a) & (b)) | ((c) & ((a) | (b))));                      \
    } while (0)

void sha256_stream_portable(uint32_t state[8], const uint8_t* blocks, size_t count) {
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], f = state[5], g = state[6],
             h = state[7];
    for (; count != 0; --count, blocks += 64) {
        uint32_t w[16];
        for (int i = 0; i < 16; ++i) w[i] = load_be(blocks + 4 * i);
        for (const uint32_t* k = sha256_k; k != sha256_k + 64; k += 16) {
            if (k != sha256_k) {
                for (int i = 0; i < 16; ++i) {
                    const uint32_t x = w[(i + 1) & 15], y = w[(i + 14) & 15];
                    w[i] +=
                        (rotr(x, 7) ^ rotr(x, 18) ^ x >> 3) + w[(i + 9) & 15] + (rotr(y, 17) ^ rotr(y, 19) ^ y >> 10);
                }
            }
            for (int i = 0; i < 16; i += 8) {
                MMKEY_ROUND(a, b, c, d, e, f, g, h, i);
                MMKEY_ROUND(h, a, b, c, d, e, f, g, i + 1);
                MMKEY_ROUND(g, h, a, b, c, d, e, f, i + 2);
                MMKEY_ROUND(f, g, h, a, b, c, d, e, i + 3);
                MMKEY_ROUND(e, f, g, h, a, b, c, d, i + 4);
                MMKEY_ROUND(d, e, f, g, h, a, b, c, i + 5);
                MMKEY_ROUND(c, d, e, f, g, h, a, b, i + 6);
                MMKEY_ROUND(b, c, d, e, f, g, h, a, i + 7);
            }
        }
        a = state[0] += a, b = state[1] += b, c = state[2] += c, d = state[3] += d;
        e = state[4] += e, f = state[5] += f, g = state[6] += g, h = state[7] += h;
    }
}

#undef MMKEY_ROUND

}  // namespace mmkey::kernel
