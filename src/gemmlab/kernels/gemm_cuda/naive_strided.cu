/* gemmlab
summary = "one thread an element, neighbours down a column: the wrong way round"
idea = "The plainest kernel, and a trap: lanes along M access a sector each, of A and of C."
source = "the slow counterpart of naive, first kernel of public CUDA matmul worklogs: x and y exchanged"
op = "gemm"
in_order = true
after = ""
arch = "sm_75"
params = { BM = 32, BN = 32, UNROLL = 16 }  # UNROLL: steps of k a turn of the loop
tune = { BM = [8, 16, 32, 64], BN = [4, 8, 16, 32], UNROLL = [4, 16, 64] }
require = ["BM >= 1", "BN >= 1", "UNROLL >= 1", "BM * BN <= 1024"]
grid = "ceil_div(M, BM) * ceil_div(N, BN)"
threads = ["BM", "BN"]
expect = [
    # The same loads and products as naive's,
    { shape = "64x64x32", that = "32 * global_load_requests == 2 * M * N * K" },
    # but a request takes 32 sectors of A (naive: 1), one of B (naive: 4) and 32 of C (naive: 4).
    { shape = "64x64x32", that = "2 * global_load_sectors == (32 + 1) * global_load_requests" },
    { shape = "64x64x32", that = "global_store_sectors_per_request == 32" },
    # Of the 32 bytes of a sector of C four are written at a time.
    { shape = "64x64x32", that = "global_store_sectors == M * N" },
]
*/

#include "epilogue.cuh"
#include "tile.cuh"

//            B   K x N                      thread (y, x) of the block computes C[row + y][col + x]
//            +-------|-------+
//            |       |       |            B[k][col + x] is the same for all 32 lanes of a warp: a broadcast
//            +-------|-------+            A[row + y][k] are 32 rows, lda apart: 32 sectors, of which one word each is
//   A  M x K         |                    wanted; the other seven are for the next steps, if they stay in the cache
//   +-------+        |
//   |-------|------- c   lane 0
//   |-------|------- c   lane 1           C[row + y][col + x]: 32 sectors again
//   |-------|------- c   lane 2
//   +-------+
template <int BM, int BN, int UNROLL>
__global__ void __launch_bounds__(BM * BN) naive_strided(
    int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc)
{
    // Blocks are numbered down M (see naive).
    const unsigned tiles_down = ceil_div(M, BM);
    const Tile tile = {static_cast<int>(blockIdx.x % tiles_down) * BM, static_cast<int>(blockIdx.x / tiles_down) * BN};
    const int y = threadIdx.x;  // [0, BM): row in the tile
    const int x = threadIdx.y;  // [0, BN): column in the tile
    if (x >= N - tile.col || y >= M - tile.row) return;

    const float* a = A + (tile.row + y) * static_cast<Offset>(lda);  // A[row + y][k]
    const float* b = B + tile.col + x;                               // B[k][col + x]
    float sum = 0.0f;
    int left = sum_depth(K, alpha);
#pragma unroll 1
    for (; left >= UNROLL; left -= UNROLL) {
#pragma unroll
        for (int k = 0; k < UNROLL; ++k) sum += a[k] * b[k * static_cast<Offset>(ldb)];
        a += UNROLL;
        b += UNROLL * static_cast<Offset>(ldb);
    }
#pragma unroll 1
    for (; left > 0; --left) {
        sum += *a++ * *b;
        b += ldb;
    }
    store_element(C + (tile.row + y) * static_cast<Offset>(ldc) + tile.col + x, alpha, sum, beta);
}
