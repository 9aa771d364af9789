/* gemmlab
summary = "a level between block and thread: a warp owns a part of the tile, a thread small pieces of that part"
idea = "A warp's part is square and its lanes read neighbours: fewer words from shared memory, and no bank conflicts."
source = "Chinese SGEMM notes: version 6; Korean worklog on CUDA matmul: its kernel 6; Chinese SGEMM profiling notes: 3"
op = "gemm"
after = "double_buffer"
arch = "sm_75"
transposes = ["nn", "nt", "tn", "tt"]
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
    "ORDER == 0 or BK == 8 or WM * WN > 2048",
    "4 * BK * (BM + 4 + BN + 4) <= 49152",
]
expect = [
    # Bank conflicts: thread_tile_2d and double_buffer have M * N * K / 256 with the same tile of 128 x 128. Here no two
    # lanes meet in a bank, in loads nor in stores, whatever the warp's part.
    { shape = "128x256x64", that = "shared_load_excess == 0 and shared_store_excess == 0" },
    { shape = "128x256x64", config = { WNITER = 4 }, that = "shared_load_excess == 0 and shared_store_excess == 0" },
    { shape = "128x256x64", config = { BK = 8, WN = 32 }, that = "shared_load_excess == 0" },
    { shape = "128x256x64", config = { BM = 64, BN = 64, BK = 8, WN = 32 }, that = "shared_load_excess == 0" },
    # 16 x 8 sums a thread: 6 loads for 128 products, where 8 x 8 take 4 for 64.
    { shape = "128x256x64", that = "executed_LDS_128 == 6 * M * N * K // (32 * 128)" },
    { shape = "128x256x64", that = "executed_LDS_128 == shared_load_requests" },
    { shape = "128x256x64", that = "WM * WN * barriers == (2 * ceil_div(K, BK) - 1) * M * N" },
    # Lanes beside each other store neighbours: all sectors of C are written once.
    { shape = "128x256x64", that = "32 * global_store_sectors == 4 * M * N" },
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

template <int BM, int BN, int BK, int WM, int WN, int WNITER, int TM, int TN, int ORDER, bool TRANS_A, bool TRANS_B>
__global__ void __launch_bounds__(32 * (BM / WM) * (BN / WN), resident_blocks(BM, BN, BK, 32 * (BM / WM) * (BN / WN)))
warp_tile(
    int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc)
{
    using Tiles = StagedPair<BM, BN, BK, 32 * (BM / WM) * (BN / WN), TRANS_A, TRANS_B>;
    using Warp = WarpTile<BN, WM, WN, WNITER, TM, TN, ORDER>;
    __shared__ __align__(16) float As[BK][Tiles::A_LD];
    __shared__ __align__(16) float Bs[BK][Tiles::B_LD];

    const Tile tile = tile_of_block<BM, BN>(N);
    Tiles next(A, lda, B, ldb, tile, M, N);
    Warp warp;

    int left = sum_depth(K, alpha);
    if (left > 0) {
        typename Warp::Fragment frags[2];  // of step k in [k % 2]
        next.fetch(left);
        next.put(As[0], Bs[0]);
        __syncthreads();
        warp.load(frags[0], As[0], Bs[0]);
        for (;; left -= BK) {
            next.fetch(left - BK);
#pragma unroll
            for (int k = 0; k < BK - 1; ++k) {
                warp.load(frags[(k + 1) % 2], As[k + 1], Bs[k + 1]);
                warp.add(frags[k % 2]);
            }
            if (left <= BK) break;
            __syncthreads();  // before the next tiles overwrite these
            next.put(As[0], Bs[0]);
            __syncthreads();
            warp.load(frags[0], As[0], Bs[0]);
            warp.add(frags[1]);  // the last step's products fill the wait for these words
        }
        warp.add(frags[1]);
    }

    C += tile.row * static_cast<Offset>(ldc) + tile.col;
    warp.store(C, ldc, next.rows, next.cols, alpha, beta);
}
