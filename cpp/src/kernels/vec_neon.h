// 4 lanes: NEON.
#include "lanes.h"

#define V uint32x4_t
#define LANES 4
#define LOAD(p) vld1q_u32(reinterpret_cast<const uint32_t*>(p))
#define STORE(p, x) vst1q_u32(reinterpret_cast<uint32_t*>(p), x)
#define SET1(x) vdupq_n_u32(x)
#define ADD(a, b) vaddq_u32(a, b)
#define XOR(a, b) veorq_u32(a, b)
#define ROTR(x, n)                                                            \
    ((n) == 16 ? vreinterpretq_u32_u16(vrev32q_u16(vreinterpretq_u16_u32(x))) \
               : vsriq_n_u32(vshlq_n_u32(x, 32 - (n)), x, n))
#define UNPACKLO32(a, b) vzip1q_u32(a, b)
#define UNPACKHI32(a, b) vzip2q_u32(a, b)
#define UNPACKLO64(a, b) vreinterpretq_u32_u64(vzip1q_u64(vreinterpretq_u64_u32(a), vreinterpretq_u64_u32(b)))
#define UNPACKHI64(a, b) vreinterpretq_u32_u64(vzip2q_u64(vreinterpretq_u64_u32(a), vreinterpretq_u64_u32(b)))
#define GATHER(p, j, at) vreinterpretq_u32_u8(vld1q_u8((p)[j] + (at)))
#define SCATTER(p, stride, j, x) vst1q_u32((p) + (stride) * (j), x)
