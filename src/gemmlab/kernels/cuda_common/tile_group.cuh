// Tiles of C in groups of rows, so that blocks which run together share what they read, and tiles that are moved back
// from the end of the matrix.
#pragma once

#include "tile.cuh"

// GROUP rows of tiles are walked through down before across, then the next GROUP; with GROUP = 2 and three tiles along N:
//
//        N
//     0  2  4      a wave of blocks covers a square rather than a strip of C: W tiles in GROUP rows read
//   M 1  3  5      GROUP tiles' rows of A and W / GROUP tiles' columns of B
//     6  7  8
template <int BM, int BN, int GROUP>
__device__ __forceinline__ Tile tile_in_group(int M, int N)
{
    const unsigned down = ceil_div(M, BM), across = ceil_div(N, BN);
    const unsigned first = blockIdx.x / (GROUP * across) * GROUP;  // row of tiles with which the group begins
    const unsigned inside = blockIdx.x % (GROUP * across);
    const unsigned height = min(down - first, static_cast<unsigned>(GROUP));
    return {static_cast<int>(first + inside % height) * BM, static_cast<int>(inside / height) * BN};
}

// Where a tile that begins at `start` begins when it must not reach beyond `extent`: further back, if there is room, and
// where it has to stay `aligned`, only by multiples of four.
template <int SIZE>
__device__ __forceinline__ int whole_tile(int start, int extent, bool aligned)
{
    const bool moves = extent >= SIZE && (!aligned || extent % 4 == 0);
    return moves ? min(start, extent - SIZE) : start;
}
