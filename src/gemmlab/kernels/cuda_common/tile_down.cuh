// Which tile of C a block owns where neighbours in the grid are neighbours along M.
#pragma once

#include "tile.cuh"

//           N
//         0    2           the blocks that run at the same time read few columns of B and all rows of A: a cache line
//      M  1    3           from far away then brings a thread's next 32 steps along a row of A, not one step of B
template <int BM, int BN>
__device__ __forceinline__ Tile tile_of_block_down(int M)
{
    const unsigned tiles = ceil_div(M, BM);
    return {static_cast<int>(blockIdx.x % tiles) * BM, static_cast<int>(blockIdx.x / tiles) * BN};
}
