// Which tile of C a block owns where neighbours in the grid are neighbours along M.
#pragma once

#include "tile.cuh"

//           N
//         0    2           The blocks that run at the same time take a few columns of B and all rows of A. What they
//      M  1    3           meet first, far from the processor, is mostly A: a line of it is 32 steps of a thread, a line
//                          of B is one. For kernels that keep nothing and wait for every step that is what counts.
template <int BM, int BN>
__device__ __forceinline__ Tile tile_of_block_down(int M)
{
    const unsigned tiles = ceil_div(M, BM);
    return {static_cast<int>(blockIdx.x % tiles) * BM, static_cast<int>(blockIdx.x / tiles) * BN};
}
