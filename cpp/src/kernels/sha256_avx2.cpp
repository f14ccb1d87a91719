#include "constants.h"
#include "kernels.h"
#include "vec_x8.h"

namespace mmkey::kernel {

#define FUNCTION sha256_lanes8_avx2
#include "sha256_lanes.inc"

}  // namespace mmkey::kernel
