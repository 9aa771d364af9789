/* gemmlab
summary = "warp tiles, vector loads and two buffers together"
idea = "Warp tiles leave shared memory time to spare, a second buffer keeps warps from waiting: FFMAs fill the time."
source = "Chinese SGEMM profiling notes: their kernel 5, the one that met cuBLAS"
op = "gemm"
after = "warp_tile"
arch = "sm_75"
grid = "ceil_div(M, BM) * ceil_div(N, BN)"
threads = "32 * (BM // WM) * (BN // WN)"
require = [
    "min(BM, BN, BK, WM, WN, WNITER, TM, TN) >= 1 and BM % WM == 0 and BN % WN == 0",
    "BM % 4 == 0 and BN % 4 == 0 and BK % 8 == 0 and TM % 4 == 0 and TN % 4 == 0",
    "WM * WN % (32 * TM * TN * WNITER) == 0 and WN % (TN * WNITER) == 0 and 32 % (WN // (TN * WNITER)) == 0",
    "32 * (BM // WM) * (BN // WN) <= 1024",
    "ORDER == 0 or ORDER == 1 and WNITER * TN == 8",  # rows of 8 products
    "BM * BK % (128 * (BM // WM) * (BN // WN)) == 0",
    "BN * BK % (128 * (BM // WM) * (BN // WN)) == 0",
    "WM * WN <= 2048 or (BM + BN) * BK <= 1024 * (BM // WM) * (BN // WN)",  # registers: 128 sums and 32 words
    "8 * BK * (BM + 4 + BN) <= 49152",
]
expect = [
    # Half of warp_tile's barriers, none of double_buffer's conflicts.
    { shape = "128x256x64", that = "WM * WN * barriers == M * N * ceil_div(K, BK)" },
    { shape = "128x256x64", that = "shared_load_excess == 0 and shared_store_excess == 0" },
    { shape = "128x256x64", config = { BK = 8, WN = 32 }, that = "shared_load_excess + shared_store_excess == 0" },
    { shape = "128x256x64", that = "executed_LDS_128 == 6 * M * N * K // (32 * 128)" },
    { shape = "128x256x64", that = "executed_LDS_128 == shared_load_requests" },
]

[params]
BM = 128
BN = 128
BK = 16
WM = 64
WN = 64
WNITER = 2  # subtiles beside each other; WMITER, how many lie below each other, follows from it
TM = 8
TN = 4
ORDER = 0   # of a step's multiply-adds: 0 a thread's pieces one after the other, 1 rows of all pieces, back and forth

[tune]
BM = [64, 128]
BN = [64, 128]
BK = [8, 16]
WN = [32, 64]
WNITER = [2, 4]
ORDER = [0, 1]
*/

#include "residency.cuh"
#include "staged_pair.cuh"
#include "tile.cuh"
#include "warp_tile.cuh"

// The tiles and pieces are warp_tile's, the order of events is double_buffer's: the next tiles are loaded from global
// memory while these are multiplied, stored into the other buffer before the last step, and one barrier follows; its
// wait, and that for the first words behind it, is filled with the last step, whose words are in registers already.
template <int BM, int BN, int BK, int WM, int WN, int WNITER, int TM, int TN, int ORDER>
__global__ void __launch_bounds__(32 * (BM / WM) * (BN / WN), resident_blocks(BM, BN, BK, 32 * (BM / WM) * (BN / WN)))
warp_tile_double_buffer(
    int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc)
{
    using Tiles = StagedPair<BM, BN, BK, 32 * (BM / WM) * (BN / WN)>;
    using Warp = WarpTile<BN, WM, WN, WNITER, TM, TN, ORDER>;
    __shared__ __align__(16) float As[2][BK][Tiles::A_LD];
    __shared__ __align__(16) float Bs[2][BK][Tiles::B_LD];

    const Tile tile = tile_of_block<BM, BN>(N);
    Tiles next(A, lda, B, ldb, tile, M, N);
    Warp warp;

    int left = sum_depth(K, alpha);
    if (left > 0) {
        typename Warp::Fragment frags[2];  // of step k in [k % 2]
        int now = 0;                       // the buffer that is computed with
        next.fetch(left);
        next.put(As[0][0], Bs[0][0]);
        __syncthreads();
        warp.load(frags[0], As[0][0], Bs[0][0]);
        for (;; left -= BK) {
            next.fetch(left - BK);
#pragma unroll
            for (int k = 0; k < BK - 1; ++k) {
                warp.load(frags[(k + 1) % 2], As[now][k + 1], Bs[now][k + 1]);
                warp.add(frags[k % 2]);
            }
            if (left <= BK) break;
            now ^= 1;
            next.put(As[now][0], Bs[now][0]);
            __syncthreads();
            warp.load(frags[0], As[now][0], Bs[now][0]);
            warp.add(frags[1]);
        }
        warp.add(frags[1]);
    }

    C += tile.row * static_cast<Offset>(ldc) + tile.col;
    warp.store(C, ldc, next.rows, next.cols, alpha, beta);
}
