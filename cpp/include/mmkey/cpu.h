// What this CPU runs, as far as the kernels care. An extension counts only if the operating system saves its registers.
#pragma once

namespace mmkey {

struct CpuFeatures {
    bool sse41 = false;  ///< with SSSE3
    bool avx2 = false;
    bool avx512 = false;  ///< F, BW and VL
    bool shani = false;   ///< with SSE4.1
    bool neon = false;
    bool armsha2 = false;  ///< the SHA-256 instructions of ARMv8
};

/// Asked once, at the first call.
const CpuFeatures& cpu_features() noexcept;

}  // namespace mmkey
