// Half a G of BLAKE3 in each of four columns, or diagonals, of the state v of many streams, in the vocabulary of lanes.h: side
// by side, since each is a chain of dependent steps. x, y, z, w: the message words.
#pragma once

#define BLAKE3_HALF(v, a, b, c, d, e, f, g, h, i, j, k, l, o, p, q, r, x, y, z, w, by_d, by_b)              \
    do {                                                                                                    \
        v[a] = ADD(v[a], x), v[b] = ADD(v[b], y), v[c] = ADD(v[c], z), v[d] = ADD(v[d], w);                 \
        v[a] = ADD(v[a], v[e]), v[b] = ADD(v[b], v[f]), v[c] = ADD(v[c], v[g]), v[d] = ADD(v[d], v[h]);     \
        v[o] = XOR(v[o], v[a]), v[p] = XOR(v[p], v[b]), v[q] = XOR(v[q], v[c]), v[r] = XOR(v[r], v[d]);     \
        v[o] = ROTR(v[o], by_d), v[p] = ROTR(v[p], by_d), v[q] = ROTR(v[q], by_d), v[r] = ROTR(v[r], by_d); \
        v[i] = ADD(v[i], v[o]), v[j] = ADD(v[j], v[p]), v[k] = ADD(v[k], v[q]), v[l] = ADD(v[l], v[r]);     \
        v[e] = XOR(v[e], v[i]), v[f] = XOR(v[f], v[j]), v[g] = XOR(v[g], v[k]), v[h] = XOR(v[h], v[l]);     \
        v[e] = ROTR(v[e], by_b), v[f] = ROTR(v[f], by_b), v[g] = ROTR(v[g], by_b), v[h] = ROTR(v[h], by_b); \
    } while (0)

#define BLAKE3_COLUMNS(v, x, y, z, w, by_d, by_b) \
    BLAKE3_HALF(v, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, x, y, z, w, by_d, by_b)

#define BLAKE3_DIAGONALS(v, x, y, z, w, by_d, by_b) \
    BLAKE3_HALF(v, 0, 1, 2, 3, 5, 6, 7, 4, 10, 11, 8, 9, 15, 12, 13, 14, x, y, z, w, by_d, by_b)
