// The constants of both algorithms, one copy in the library: defined in constants.cpp, which no extension is used in.
#pragma once

#include <stdint.h>

namespace mmkey::kernel {

/// SHA-256's initial state, which is BLAKE3's IV too.
extern const uint32_t iv[8];

/// SHA-256's round constants.
extern const uint32_t sha256_k[64];

/// Shuffle controls of 16 bytes: from byte 48 on the identity, n bytes further along one that moves a register n bytes down,
/// before it up; 0x80, which gives zero, for what moves in.
extern const uint8_t blake3_chain_window[128];

/// BLAKE3: the message words of each round's steps, as arguments: a lane's words are registers and no array in memory.
#define MMKEY_BLAKE3_ROUNDS(ROUND)                               \
    ROUND(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15); \
    ROUND(2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8); \
    ROUND(3, 4, 10, 12, 13, 2, 7, 14, 6, 5, 9, 0, 11, 15, 8, 1); \
    ROUND(10, 7, 12, 9, 14, 3, 13, 15, 4, 0, 11, 2, 5, 8, 1, 6); \
    ROUND(12, 13, 9, 11, 15, 10, 14, 8, 7, 2, 5, 3, 0, 1, 6, 4); \
    ROUND(9, 14, 11, 5, 8, 12, 15, 1, 13, 3, 0, 10, 2, 6, 4, 7); \
    ROUND(11, 15, 5, 0, 1, 9, 8, 6, 14, 10, 2, 12, 3, 4, 7, 13)

// The first words of iv, as constants of the compiler.
#define IV0 0x6a09e667u
#define IV1 0xbb67ae85u
#define IV2 0x3c6ef372u
#define IV3 0xa54ff53au

}  // namespace mmkey::kernel
