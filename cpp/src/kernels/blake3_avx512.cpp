#include "blake3_half.h"
#include "constants.h"
#include "kernels.h"
#include "lanes.h"

namespace mmkey::kernel {

#include "rows_x1.h"
#define FUNCTION(x) x1_##x
#define SINGLE(x) blake3_##x##_avx512
#include "blake3_rows.inc"
#include "blake3_single.inc"
#undef FUNCTION
#undef ROWS_INITIAL

#include "rows_x4.h"
#define FUNCTION(x) x4_##x
#include "blake3_rows.inc"

void blake3_chain4_avx512(const ChainLink* const* links, size_t count, const uint8_t* const* parents,
                          uint8_t* const* out) {
    x4_chain(links, count, parents, out);
}

// Four streams take hardly longer than one: a row-wise compression waits for its own steps, whatever its width.
void blake3_lanes4_avx512(const Blake3Batch* batch) {
#define AT(k) (batch->cv + batch->cv_stride * k)
    V h0 = PARTS(AT);
#undef AT
#define AT(k) (batch->cv + batch->cv_stride * k + 4)
    V h1 = PARTS(AT);
#undef AT
    for (size_t block = 0; block < batch->blocks; ++block) {
        const bool last = block + 1 == batch->blocks;
        V m[4], r[4] = {h0, h1, ROWS_INITIAL, h0};
        for (int j = 0; j < 4; ++j) {
#define AT(k) (batch->in[k] + 64 * block + 16 * j)
            m[j] = PARTS(AT);
#undef AT
        }
        uint32_t row[4][4];
        const uint32_t flags = batch->flags | (block == 0 ? batch->first_flags : 0);
        for (int k = 0; k < 4; ++k) {
            row[k][0] = static_cast<uint32_t>(batch->counter[k]);
            row[k][1] = static_cast<uint32_t>(batch->counter[k] >> 32);
            row[k][2] = last ? batch->last_length[k] : 64;
            row[k][3] = flags | (last ? batch->last_flags[k] : 0);
        }
        r[3] = LOAD(row);
        x4_rounds(r, m);
        h0 = XOR(r[0], r[2]);
        h1 = XOR(r[1], r[3]);
    }
#define AT(k) (batch->out + 8 * (k))
    STORE_PARTS(AT, h0);
#undef AT
#define AT(k) (batch->out + 8 * (k) + 4)
    STORE_PARTS(AT, h1);
#undef AT
}
#undef FUNCTION

#include "vec_x16.h"
#define FUNCTION blake3_lanes16_avx512
#include "blake3_lanes.inc"
#undef FUNCTION

#include "vec_x8.h"
#define FUNCTION blake3_lanes8_avx512
#include "blake3_lanes.inc"
#undef FUNCTION

}  // namespace mmkey::kernel
