// Orders in which blocks walk the tiles of C, so that those which run at the same time share rows of A and columns of
// B in L2. Blocks start about in the order of their numbers.
//
//   ROW_BY_ROW            GROUPED, strips of 2      SERPENTINE, strips of 2
//
//    0  1  2  3  4         0  1 |  6  7 | 12         0  1 | 10 11 | 12       every second strip is walked
//    5  6  7  8  9         2  3 |  8  9 | 13         2  3 |  8  9 | 13       upwards: the rows of A that end
//   10 11 12 13 14         4  5 | 10 11 | 14         4  5 |  6  7 | 14       one begin the next
#pragma once

#include "tile.cuh"

constexpr int ROW_BY_ROW = 0;
constexpr int GROUPED = 1;
constexpr int SERPENTINE = 2;

template <int BM, int BN, int ORDER, int GROUP>
__device__ __forceinline__ Tile tile_in_order(int M, int N)
{
    static_assert(ORDER >= ROW_BY_ROW && ORDER <= SERPENTINE && GROUP >= 1, "no such order");
    if constexpr (ORDER == ROW_BY_ROW) return tile_of_block<BM, BN>(N);
    const unsigned down = ceil_div(M, BM), across = ceil_div(N, BN);
    const unsigned per_strip = down * min(across, static_cast<unsigned>(GROUP));  // no more than there are blocks
    const unsigned strip = blockIdx.x / per_strip, in_strip = blockIdx.x % per_strip;
    const unsigned width = min(across - strip * GROUP, static_cast<unsigned>(GROUP));  // the last may be narrower
    const unsigned step = in_strip / width;                                            // [0, down)
    const unsigned row = ORDER == SERPENTINE && strip % 2 ? down - 1 - step : step;
    return {static_cast<int>(row) * BM, static_cast<int>(strip * GROUP + in_strip % width) * BN};
}
