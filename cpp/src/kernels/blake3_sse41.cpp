#include "blake3_half.h"
#include "constants.h"
#include "kernels.h"
#include "lanes.h"

namespace mmkey::kernel {

#include "rows_x1.h"
#define FUNCTION(x) x1_##x
#define SINGLE(x) blake3_##x##_sse41
#include "blake3_rows.inc"
#include "blake3_single.inc"
#undef FUNCTION

#define FUNCTION blake3_lanes4_sse41
#include "blake3_lanes.inc"

}  // namespace mmkey::kernel
