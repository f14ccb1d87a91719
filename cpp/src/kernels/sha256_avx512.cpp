#include "constants.h"
#include "kernels.h"
#include "lanes.h"

namespace mmkey::kernel {

#include "vec_x16.h"
#define FUNCTION(x) sha256_##x##16_avx512
#include "sha256_lanes.inc"
#undef FUNCTION

#include "vec_x8.h"
#define FUNCTION(x) sha256_##x##8_avx512
#include "sha256_lanes.inc"
#undef FUNCTION

}  // namespace mmkey::kernel
