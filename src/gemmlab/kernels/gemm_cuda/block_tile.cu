/* gemmlab
summary = "tiles of A and B in shared memory, one thread an element"
idea = "A block reads each element of its tiles once from global memory and uses it BN or BM times from shared memory."
source = "Korean worklog on CUDA matmul: its kernel 2; Chinese SGEMM profiling notes: their kernel 1"
op = "gemm"
after = "naive"
arch = "sm_75"
params = { BM = 32, BN = 32, BK = 32 }
tune = { BM = [8, 16, 32], BN = [32, 64], BK = [8, 16, 32, 64] }
require = ["BM >= 1", "BN >= 1", "BK >= 1", "BM * BN <= 1024", "BM * BN % BK == 0", "4 * BK * (BM + BN) <= 49152"]
grid = "ceil_div(M, BM) * ceil_div(N, BN)"
threads = "BM * BN"
expect = [
    { shape = "64x96x64", that = "32 * global_load_requests == M * N * K // BM + M * N * K // BN" },
    { shape = "64x96x64", that = "global_load_sectors_per_request == 4 and global_store_sectors_per_request == 4" },
    "shared_load_excess == 0",
    "shared_store_excess == 0",
    # Two words of shared memory a multiply-add; As comes four at a time.
    { shape = "64x96x64", that = "32 * (executed_LDS + 3 * executed_LDS_128) == 2 * M * N * K" },
    { shape = "64x96x64", that = "barriers == 2 * ceil_div(K, BK) * M * N // 32" },
]
*/

#include "epilogue.cuh"
#include "moving_tile.cuh"
#include "tile.cuh"

//                      B   K x N
//                 +------+------+------+
//                 |      |  Bs  |      |  BK     As  BM x BK  of A and  Bs  BK x BN  of B, which move on by BK:
//                 |      +------+      |         As to the right, Bs down
//                 |      |  BN  |      |
//     A  M x K    +------+------+------+         a row of As is read by the BN threads beside each other, a column of
//   +---------+   +------+------+------+         Bs by the BM threads above each other
//   | As  BK  |   |      |  C   | BM   |
//   +---------+   |      +------+      |         a warp is 32 neighbours in a row of C: As[y][k] is one word for all of
//   |         |   |      |      |      |         them, Bs[k][x] are 32 words in 32 banks: no conflicts
template <int BM, int BN, int BK>
__global__ void __launch_bounds__(BM * BN) block_tile(
    int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc)
{
    __shared__ __align__(16) float As[BM][BK];
    __shared__ __align__(16) float Bs[BK][BN];

    const Tile tile = tile_of_block<BM, BN>(N);
    const int rows = M - tile.row, cols = N - tile.col;  // of C from this tile on
    const int x = threadIdx.x % BN;                      // [0, BN): column in the tile
    const int y = threadIdx.x / BN;                      // [0, BM): row in the tile
    A += tile.row * static_cast<Offset>(lda);
    B += tile.col;
    MovingTiles<BM, BN, BK, BM * BN> tiles(A, lda, B, ldb, rows, cols);

    float sum = 0.0f;
    for (int left = sum_depth(K, alpha); left > 0; left -= BK) {
        tiles.load(As, Bs, left);  // between two barriers: nobody needs the tiles before, everybody sees these
#pragma unroll
        for (int k = 0; k < BK; ++k) sum += As[y][k] * Bs[k][x];
    }
    if (y < rows && x < cols)
        store_element(C + (tile.row + y) * static_cast<Offset>(ldc) + tile.col + x, alpha, sum, beta);
}
