// One chain on SHA-NI, which waits for itself, and eight leading blocks in the lanes of AVX-512VL, which fill the time.
//
// SHA-NI's instructions have no VEX form: with anything in the upper halves of registers 0 to 15 each of them took
// a hundred times as long (Xeon, family 6 model 207). What runs beside them keeps to registers 16 to 31, which no compiler
// promises of an intrinsic: hence assembly, with the registers named. They hold their values from statement to statement, since
// nothing is called in between; were that to change, the known answers would fail when the library is loaded.
#include "sha256_shani.h"

#include "vec_x8.h"

namespace mmkey::kernel {

namespace {

struct alignas(32) Lanes {
    V words[16], initial[8], state[8];
};

// These two use registers below 16, and leave them clean: they are never inlined.

__attribute__((noinline)) void gather(Lanes& lanes, const Ahead* job) {
    V w[16], s[8];
    LOAD_BLOCKS(w, job->in, 0);
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) lanes.words[i] = BYTESWAP(w[i]);
    if (job->more) {
        LOAD_STATES(s, job->ahead[0].state, sizeof(ChainLink) / 4);
    } else {
        for (int i = 0; i < 8; ++i) s[i] = SET1(iv[i]);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) lanes.initial[i] = s[i];
}

__attribute__((noinline)) void scatter(const Ahead* job, const Lanes& lanes) {
    V s[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) s[i] = ADD(lanes.initial[i], lanes.state[i]);
    STORE_STATES(job->ahead[0].state, s, sizeof(ChainLink) / 4);
}

}  // namespace

// One round of the lanes: d and h change. Operands: 0 d, 1 h, 2 to 5 spare, 6 a, 7 b, 8 c, 9 e, 10 f, 11 g, 12 word, 13 k.
#define ROUND(a, b, c, d, e, f, g, h, word, k)                                                                    \
    asm("vpbroadcastd %13, %2\n\t"                                                                                \
        "vprord $6, %9, %3\n\t"                                                                                   \
        "vprord $11, %9, %4\n\t"                                                                                  \
        "vprord $25, %9, %5\n\t"                                                                                  \
        "vpaddd %12, %2, %2\n\t"                                                                                  \
        "vpternlogd $0x96, %3, %4, %5\n\t"                                                                        \
        "vmovdqa64 %9, %3\n\t"                                                                                    \
        "vpternlogd $0xca, %11, %10, %3\n\t" /* e ? f : g */                                                      \
        "vpaddd %2, %1, %1\n\t"                                                                                   \
        "vpaddd %5, %3, %3\n\t"                                                                                   \
        "vprord $2, %6, %2\n\t"                                                                                   \
        "vprord $13, %6, %4\n\t"                                                                                  \
        "vprord $22, %6, %5\n\t"                                                                                  \
        "vpaddd %3, %1, %1\n\t"                                                                                   \
        "vpternlogd $0x96, %2, %4, %5\n\t"                                                                        \
        "vmovdqa64 %6, %3\n\t"                                                                                    \
        "vpternlogd $0xe8, %8, %7, %3\n\t" /* majority */                                                         \
        "vpaddd %1, %0, %0\n\t"                                                                                   \
        "vpaddd %5, %3, %3\n\t"                                                                                   \
        "vpaddd %3, %1, %1"                                                                                       \
        : "+v"(d), "+v"(h), "=&v"(t0), "=&v"(t1), "=&v"(t2), "=&v"(t3)                                            \
        : "v"(a), "v"(b), "v"(c), "v"(e), "v"(f), "v"(g), "m"(word), "m"(k))

// The word of 16 rounds later in the place of w0. Operands: 0 w0, 1 to 4 spare, 5 w1, 6 w9, 7 w14.
#define EXPAND(w0, w1, w9, w14)                                \
    asm("vprord $7, %5, %1\n\t"                                \
        "vprord $18, %5, %2\n\t"                               \
        "vpsrld $3, %5, %3\n\t"                                \
        "vmovdqa64 %0, %4\n\t"                                 \
        "vpternlogd $0x96, %1, %2, %3\n\t"                     \
        "vpaddd %6, %4, %4\n\t"                                \
        "vprord $17, %7, %1\n\t"                               \
        "vprord $19, %7, %2\n\t"                               \
        "vpaddd %3, %4, %4\n\t"                                \
        "vpsrld $10, %7, %3\n\t"                               \
        "vpternlogd $0x96, %1, %2, %3\n\t"                     \
        "vpaddd %3, %4, %4\n\t"                                \
        "vmovdqa64 %4, %0"                                     \
        : "+m"(w0), "=&v"(t0), "=&v"(t1), "=&v"(t2), "=&v"(t3) \
        : "m"(w1), "m"(w9), "m"(w14))

// Four rounds of the chain and, halfway, a piece of the lanes' work.
#define FOUR_ROUNDS(i, lanes)                       \
    do {                                            \
        two_more_rounds(s, two_rounds(s, i));       \
        lanes;                                      \
        if (i < 12) expand(s, i);                   \
    } while (0)

// Round r of a half's eight; its words begin at `low`, those of the other half at `high`.
#define BESIDE(r, a, b, c, d, e, f, g, h)                                                             \
    FOUR_ROUNDS(2 * r, ROUND(a, b, c, d, e, f, g, h, low[r], k[r]));                                  \
    FOUR_ROUNDS(2 * r + 1, if (expanding) EXPAND(low[r], *(r < 7 ? low + r + 1 : high),               \
                                                 *(r < 7 ? high + r + 1 : low), *(r < 2 ? high + r + 6 : low + r - 2)))

void sha256_ahead_avx512(const Ahead* job) {
    Lanes lanes;
    gather(lanes, job);
    register V a asm("ymm16"), b asm("ymm17"), c asm("ymm18"), d asm("ymm19"), e asm("ymm20"), f asm("ymm21"),
        g asm("ymm22"), h asm("ymm23"), t0 asm("ymm24"), t1 asm("ymm25"), t2 asm("ymm26"), t3 asm("ymm27");
#define FOR_EACH_WORD(DO) DO(a, 0) DO(b, 1) DO(c, 2) DO(d, 3) DO(e, 4) DO(f, 5) DO(g, 6) DO(h, 7)
#define LOAD_WORD(x, i) asm("vmovdqa64 %1, %0" : "=v"(x) : "m"(lanes.initial[i]));
#define STORE_WORD(x, i) asm("vmovdqa64 %1, %0" : "=m"(lanes.state[i]) : "v"(x));
    FOR_EACH_WORD(LOAD_WORD)
    Stream p, s;  // the parent and the link
    load_digest(p, job->parent);
    V *low = lanes.words, *high = lanes.words + 8;
    const uint32_t* k = sha256_k;
    for (size_t i = 0; i < stretch; ++i, k += 8) {
        load_link(s, job->links[i], p);
        const __m128i abef = s.abef, cdgh = s.cdgh;
        const bool expanding = i < 6;
        BESIDE(0, a, b, c, d, e, f, g, h);
        BESIDE(1, h, a, b, c, d, e, f, g);
        BESIDE(2, g, h, a, b, c, d, e, f);
        BESIDE(3, f, g, h, a, b, c, d, e);
        BESIDE(4, e, f, g, h, a, b, c, d);
        BESIDE(5, d, e, f, g, h, a, b, c);
        BESIDE(6, c, d, e, f, g, h, a, b);
        BESIDE(7, b, c, d, e, f, g, h, a);
        p.abef = _mm_add_epi32(s.abef, abef);
        p.cdgh = _mm_add_epi32(s.cdgh, cdgh);
        store_digest(job->out + 32 * i, p);
        V* const other = low;
        low = high;
        high = other;
    }
    FOR_EACH_WORD(STORE_WORD)
    scatter(job, lanes);
}

}  // namespace mmkey::kernel
