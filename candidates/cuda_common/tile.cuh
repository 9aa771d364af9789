// Which tile of C a block owns, and how long its sums are.
#pragma once

using Offset = long long;  // row * leading dimension does not fit in 32 bits

// First row and column of a tile. Rows and columns beyond it are counted from there, never from 0: an extent may be
// close to 2^31, where row + 1 overflows and `rows left` does not.
struct Tile {
    int row;
    int col;
};

__device__ __forceinline__ unsigned ceil_div(int extent, unsigned step)
{
    return (static_cast<unsigned>(extent) + step - 1) / step;
}

// Blocks lie in one row, because M / BM and N / BN may both exceed the 65,535 that gridDim.y can be. Neighbours in
// the grid are neighbours along N:
//
//              N
//         0    1    2           blockIdx.x = 3 * (row of tiles) + (column of tiles)
//      M  3    4    5           for three tiles along N
template <int BM, int BN>
__device__ __forceinline__ Tile tile_of_block(int N)
{
    const unsigned tiles = ceil_div(N, BN);
    return {static_cast<int>(blockIdx.x / tiles) * BM, static_cast<int>(blockIdx.x % tiles) * BN};
}

// Terms of each sum: K, or 0 where the product has no part in the result, and then A and B must not be read. With
// K == 0 alpha is dropped too: a NaN in it would spoil the empty sum.
__device__ __forceinline__ int sum_depth(int K, float& alpha)
{
    if (K == 0) alpha = 0.0f;
    return alpha == 0.0f ? 0 : K;
}
