#include "constants.h"
#include "kernels.h"
#include "vec_x8.h"

namespace mmkey::kernel {

#define FUNCTION(x) sha256_##x##8_avx2
#include "sha256_lanes.inc"

}  // namespace mmkey::kernel
