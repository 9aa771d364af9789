/* gemmlab
summary = "one thread an element, neighbours along a row"
idea = "The lanes of a warp share a row of A and read neighbouring columns of B, so a request needs few sectors."
source = "Korean worklog on CUDA matmul: its kernel 1; Chinese summary of SGEMM versions: its v0"
op = "gemm"
in_order = true
after = "naive_strided"
arch = "sm_75"
params = { BM = 32, BN = 32, UNROLL = 16 }  # UNROLL: steps of k a turn of the loop
tune = { BM = [4, 8, 16, 32], BN = [8, 16, 32, 64], UNROLL = [4, 16, 64] }
require = ["BM >= 1", "BN >= 1", "UNROLL >= 1", "BM * BN <= 1024"]
grid = "ceil_div(M, BM) * ceil_div(N, BN)"
threads = ["BN", "BM"]
expect = [
    { shape = "64x64x32", that = "32 * global_load_requests == 2 * M * N * K" },
    # A: one sector for the whole warp. B and C: 32 floats in a row, four sectors.
    { shape = "64x64x32", that = "2 * global_load_sectors == 5 * global_load_requests" },
    { shape = "64x64x32", that = "global_store_sectors_per_request == 4" },
]
*/

#include "epilogue.cuh"
#include "tile.cuh"

//            B   K x N                      thread (x, y) of the block computes C[row + y][col + x]
//            +-------|-------+
//            |       |       |            A[row + y][k] is the same for all 32 lanes of a warp: a broadcast
//            +-------|-------+            B[k][col + x] are 32 neighbours: 128 bytes, four sectors
//   A  M x K         |                    K times the same row and the same columns: nothing is kept, each
//   +-------+        |                    element of A is read N times and each of B M times
//   |-------|------- c   C[row + y][col + x]
//   +-------+
template <int BM, int BN, int UNROLL>
__global__ void __launch_bounds__(BM * BN) naive(
    int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc)
{
    //        N
    //      0    2        Blocks are numbered down M: those that run at the same time take a few columns of B and all
    //   M  1    3        rows of A. So most cache lines that come from memory are of A, and such a line
    //                    serves 32 steps of a thread; a line of B serves one.
    const unsigned tiles_down = ceil_div(M, BM);
    const Tile tile = {static_cast<int>(blockIdx.x % tiles_down) * BM, static_cast<int>(blockIdx.x / tiles_down) * BN};
    const int x = threadIdx.x;  // [0, BN): column in the tile
    const int y = threadIdx.y;  // [0, BM): row in the tile
    if (x >= N - tile.col || y >= M - tile.row) return;

    const float* a = A + (tile.row + y) * static_cast<Offset>(lda);  // A[row + y][k]
    const float* b = B + tile.col + x;                               // B[k][col + x]
    float sum = 0.0f;
    int left = sum_depth(K, alpha);
    // UNROLL steps a turn: A's addresses are one register pair plus constants, B's cost one instruction each, and the
    // loads of later steps need not wait for the first product.
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
