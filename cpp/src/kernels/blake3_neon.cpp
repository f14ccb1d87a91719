#include "blake3_half.h"
#include "constants.h"
#include "kernels.h"
#include "vec_neon.h"

namespace mmkey::kernel {

#define FUNCTION blake3_lanes4_neon
#include "blake3_lanes.inc"

}  // namespace mmkey::kernel
