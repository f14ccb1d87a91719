# The digest layer: one source a kernel, each with the flags of its own instruction set and no others.
target_sources(mmkey_core PRIVATE
  src/cpu.cpp
  src/hash.cpp
  src/hash_blake3.cpp
  src/hash_chains.cpp
  src/hash_dispatch.cpp
  src/hash_many.cpp
  src/hash_many_blake3.cpp
  src/hash_many_sha256.cpp
  src/hash_pixels.cpp
  src/hash_sha256.cpp
  src/hash_threads.cpp
  src/hash_tree.cpp
  src/kernels/blake3_portable.cpp
  src/kernels/constants.cpp
  src/kernels/pixels_portable.cpp
  src/kernels/sha256_portable.cpp)

# A kernel is never compiled for link-time optimisation: it would lose the flags that are its alone.
function(mmkey_kernel source)
  target_sources(mmkey_core PRIVATE ${source})
  set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${ARGN};-fno-lto")
endfunction()

if(NOT MMKEY_PORTABLE AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  target_compile_definitions(mmkey_core PRIVATE MMKEY_X86_KERNELS)
  set(avx512 -mavx512f -mavx512bw -mavx512vl -mprefer-vector-width=512)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # The order of additions is chosen for latency; the warnings are about the compiler's own headers.
    set(in_order -fno-tree-reassoc -Wno-uninitialized -Wno-maybe-uninitialized)
  endif()
  mmkey_kernel(src/kernels/sha256_shani.cpp -msse4.1 -msha)
  # Its registers are its own from one assembly statement to the next: no sanitizer may call anything in between.
  mmkey_kernel(src/kernels/sha256_ahead_avx512.cpp -msha ${avx512} -mprefer-vector-width=256 ${in_order}
    -fno-sanitize=all)
  mmkey_kernel(src/kernels/sha256_avx2.cpp -mavx2 ${in_order})
  mmkey_kernel(src/kernels/sha256_avx512.cpp ${avx512} ${in_order})
  mmkey_kernel(src/kernels/blake3_sse41.cpp -msse4.1 ${in_order})
  mmkey_kernel(src/kernels/blake3_avx2.cpp -mavx2 ${in_order})
  mmkey_kernel(src/kernels/blake3_avx512.cpp ${avx512} ${in_order})
  mmkey_kernel(src/kernels/blake3_ahead_avx512.cpp ${avx512} -mprefer-vector-width=256 ${in_order})
  mmkey_kernel(src/kernels/pixels_sse41.cpp -msse4.1)
  mmkey_kernel(src/kernels/pixels_avx512.cpp ${avx512} ${in_order})
elseif(NOT MMKEY_PORTABLE AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  target_compile_definitions(mmkey_core PRIVATE MMKEY_ARM_KERNELS)
  mmkey_kernel(src/kernels/blake3_neon.cpp)
  mmkey_kernel(src/kernels/pixels_neon.cpp)
  mmkey_kernel(src/kernels/sha256_armsha2.cpp -march=armv8-a+crypto)
endif()
