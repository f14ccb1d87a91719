#include "kernels.h"

#include <string.h>

namespace mmkey::kernel {

void pixels_pack_portable(const uint8_t* in, uint8_t* out, size_t count) {
    for (; count >= 4; count -= 4, in += 16, out += 12) {
        uint32_t p[4];
        memcpy(p, in, sizeof p);
        const uint32_t packed[3] = {(p[0] & 0xffffff) | p[1] << 24, (p[1] >> 8 & 0xffff) | p[2] << 16,
                                    (p[2] >> 16 & 0xff) | p[3] << 8};
        memcpy(out, packed, sizeof packed);
    }
    for (; count != 0; --count, in += 4, out += 3) memcpy(out, in, 3);
}

}  // namespace mmkey::kernel
