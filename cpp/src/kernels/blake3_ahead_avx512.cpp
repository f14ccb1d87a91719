// One chain, which waits for itself, and eight leading blocks in lanes, which fill the time. No 512-bit register is used: while
// one is under way, a third of the ports is closed to vectors.
#include "blake3_half.h"
#include "constants.h"
#include "kernels.h"
#include "lanes.h"

namespace mmkey::kernel {

#include "rows_x1.h"
#define FUNCTION(x) x1_##x
#include "blake3_rows.inc"
#undef FUNCTION

#include "vec_x8.h"

namespace {

// For each round the words of its four halves, as offsets in bytes of words of the lanes.
struct Schedule {
    uint16_t at[7][4][4];

    constexpr Schedule() : at{} {
        int round = 0;
#define ROUND(s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14, s15)                               \
    do {                                                                                                          \
        const int words[4][4] = {{s0, s2, s4, s6}, {s1, s3, s5, s7}, {s8, s10, s12, s14}, {s9, s11, s13, s15}};   \
        for (int half = 0; half < 4; ++half)                                                                      \
            for (int i = 0; i < 4; ++i) at[round][half][i] = static_cast<uint16_t>(4 * LANES * words[half][i]);   \
        ++round;                                                                                                  \
    } while (0)
        MMKEY_BLAKE3_ROUNDS(ROUND);
#undef ROUND
    }
};

constexpr Schedule schedule;

}  // namespace

void blake3_ahead_avx512(const Ahead* job) {
    V m[16], v[16];
    LOAD_BLOCKS(m, job->in, 0);
    if (job->more) {
        LOAD_STATES(v, job->ahead[0].state, sizeof(ChainLink) / 4);
    } else {
        for (int i = 0; i < 8; ++i) v[i] = SET1(iv[i]);
    }
    v[8] = SET1(IV0), v[9] = SET1(IV1), v[10] = SET1(IV2), v[11] = SET1(IV3);
    v[12] = v[13] = SET1(0), v[14] = SET1(64), v[15] = LOAD(job->flags);
    const auto* const words = reinterpret_cast<const uint8_t*>(m);
    __m128i p0 = LOAD128(job->parent), p1 = LOAD128(job->parent + 16);
    for (size_t i = 0; i < stretch; ++i) {
        __m128i r[4], w[4], link[4];
        x1_load_links(r, link, &job->links, i, p0, p1);
        x1_words(w, link);
        // The lanes' round i, in quarters.
#define WORD(quarter, n) LOAD(words + schedule.at[i][quarter][n])
#define BESIDE(quarter, KIND, by_d, by_b) \
    if (i < 7) KIND(v, WORD(quarter, 0), WORD(quarter, 1), WORD(quarter, 2), WORD(quarter, 3), by_d, by_b)
#pragma GCC unroll 7
        for (int round = 0; round < 7; ++round) {
            x1_half(r, w[0], w[1]);
            x1_to_diagonals(r);
            if (round == 0) BESIDE(0, BLAKE3_COLUMNS, 16, 12);
            if (round == 2) BESIDE(1, BLAKE3_COLUMNS, 8, 7);
            if (round == 4) BESIDE(2, BLAKE3_DIAGONALS, 16, 12);
            if (round == 6) BESIDE(3, BLAKE3_DIAGONALS, 8, 7);
            x1_half(r, w[2], w[3]);
            x1_to_columns(r);
            if (round < 6) x1_permute(w);
        }
#undef BESIDE
#undef WORD
        p0 = _mm_xor_si128(r[0], r[2]);
        p1 = _mm_xor_si128(r[1], r[3]);
        STORE128(job->out + 32 * i, p0);
        STORE128(job->out + 32 * i + 16, p1);
    }
    for (int i = 0; i < 8; ++i) v[i] = XOR(v[i], v[i + 8]);
    STORE_STATES(job->ahead[0].state, v, sizeof(ChainLink) / 4);
}

}  // namespace mmkey::kernel
