#include <string.h>

#include "constants.h"
#include "kernels.h"

namespace mmkey::kernel {

namespace {

inline uint32_t rotr(uint32_t x, int n) { return x >> n | x << (32 - n); }

inline void mix(uint32_t v[16], int a, int b, int c, int d, uint32_t x, uint32_t y) {
    v[a] += v[b] + x;
    v[d] = rotr(v[d] ^ v[a], 16);
    v[c] += v[d];
    v[b] = rotr(v[b] ^ v[c], 12);
    v[a] += v[b] + y;
    v[d] = rotr(v[d] ^ v[a], 8);
    v[c] += v[d];
    v[b] = rotr(v[b] ^ v[c], 7);
}

inline void permute(uint32_t v[16], const uint32_t cv[8], const uint8_t* block, uint64_t counter, uint32_t length,
                    uint32_t flags) {
    uint32_t m[16];
    memcpy(m, block, 64);
    memcpy(v, cv, 32);
    memcpy(v + 8, iv, 16);
    v[12] = static_cast<uint32_t>(counter);
    v[13] = static_cast<uint32_t>(counter >> 32);
    v[14] = length;
    v[15] = flags;
#define ROUND(s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14, s15) \
    do {                                                                            \
        mix(v, 0, 4, 8, 12, m[s0], m[s1]);                                          \
        mix(v, 1, 5, 9, 13, m[s2], m[s3]);                                          \
        mix(v, 2, 6, 10, 14, m[s4], m[s5]);                                         \
        mix(v, 3, 7, 11, 15, m[s6], m[s7]);                                         \
        mix(v, 0, 5, 10, 15, m[s8], m[s9]);                                         \
        mix(v, 1, 6, 11, 12, m[s10], m[s11]);                                       \
        mix(v, 2, 7, 8, 13, m[s12], m[s13]);                                        \
        mix(v, 3, 4, 9, 14, m[s14], m[s15]);                                        \
    } while (0)
    MMKEY_BLAKE3_ROUNDS(ROUND);
#undef ROUND
}

}  // namespace

void blake3_compress_portable(uint32_t cv[8], const uint8_t* block, uint64_t counter, uint32_t length, uint32_t flags) {
    uint32_t v[16];
    permute(v, cv, block, counter, length, flags);
    for (int i = 0; i < 8; ++i) cv[i] = v[i] ^ v[i + 8];
}

void blake3_stream_portable(uint32_t cv[8], const uint8_t* blocks, size_t count, uint64_t counter, uint32_t flags,
                            uint32_t first_flags) {
    for (; count != 0; --count, blocks += 64, first_flags = 0)
        blake3_compress_portable(cv, blocks, counter, 64, flags | first_flags);
}

void blake3_output_portable(const uint32_t cv[8], const uint8_t* block, uint64_t counter, uint32_t length,
                            uint32_t flags, uint8_t out[64]) {
    uint32_t v[16];
    permute(v, cv, block, counter, length, flags);
    for (int i = 0; i < 8; ++i) {
        v[i] ^= v[i + 8];
        v[i + 8] ^= cv[i];
    }
    memcpy(out, v, 64);
}

}  // namespace mmkey::kernel
