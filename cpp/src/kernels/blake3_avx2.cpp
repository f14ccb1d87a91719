#include "blake3_half.h"
#include "constants.h"
#include "kernels.h"
#include "vec_x8.h"

namespace mmkey::kernel {

#define FUNCTION blake3_lanes8_avx2
#include "blake3_lanes.inc"

}  // namespace mmkey::kernel
