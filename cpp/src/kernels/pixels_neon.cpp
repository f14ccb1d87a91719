#include "kernels.h"

#include <arm_neon.h>

namespace mmkey::kernel {

void pixels_pack_neon(const uint8_t* in, uint8_t* out, size_t count) {
    for (; count >= 16; count -= 16, in += 64, out += 48) {
        const uint8x16x4_t pixels = vld4q_u8(in);
        vst3q_u8(out, uint8x16x3_t{{pixels.val[0], pixels.val[1], pixels.val[2]}});
    }
    pixels_pack_portable(in, out, count);
}

}  // namespace mmkey::kernel
