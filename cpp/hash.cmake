# The digest layer: one source a kernel, each with the flags of its own instruction set and no others.
target_sources(mmkey_core PRIVATE src/hash.cpp)
