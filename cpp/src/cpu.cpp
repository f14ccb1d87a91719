#include "mmkey/cpu.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace mmkey {

namespace {

CpuFeatures detect() noexcept {
    CpuFeatures cpu;
#if defined(__x86_64__) || defined(__i386__)
    __builtin_cpu_init();
    cpu.sse41 = __builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("ssse3");
    cpu.avx2 = __builtin_cpu_supports("avx2");
    cpu.avx512 =
        __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    const bool leaf7 = __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0;
    cpu.shani = leaf7 && (ebx >> 29 & 1) != 0 && cpu.sse41;
#elif defined(__aarch64__)
    cpu.neon = true;
#if defined(__linux__)
    cpu.armsha2 = (getauxval(AT_HWCAP) & HWCAP_SHA2) != 0;
#elif defined(__APPLE__)
    cpu.armsha2 = true;
#endif
#endif
    return cpu;
}

}  // namespace

const CpuFeatures& cpu_features() noexcept {
    static const CpuFeatures cpu = detect();
    return cpu;
}

}  // namespace mmkey
