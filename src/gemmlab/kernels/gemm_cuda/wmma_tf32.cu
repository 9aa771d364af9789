/* gemmlab
summary = "tensor cores through WMMA: a warp multiplies 16 x 8 by 8 x 16, its inputs rounded to TF32"
idea = "One instruction of a warp does 512 multiply-adds where FFMA does 32; inputs keep 11 of float32's 24 bits."
source = "Chinese GEMM notes on an RTX 4050: tensor cores through WMMA"
op = "gemm"
after = "block_tile"
branch = true
arch = "sm_80"
precision = "tf32"
grid = "ceil_div(M, BM) * ceil_div(N, BN)"
threads = "32 * (BM // WM) * (BN // WN)"
require = [
    "min(BM, BN, BK, WM, WN) >= 1 and BM % WM == 0 and BN % WN == 0",
    "WM % 16 == 0 and WN % 16 == 0 and WM * WN <= 4096 and BK % 8 == 0",
    "BM * BK % (128 * (BM // WM) * (BN // WN)) == 0 and BN * BK % (128 * (BM // WM) * (BN // WN)) == 0",
    "4 * max(BK * (BM + BN), 256 * (BM // WM) * (BN // WN)) <= 49152",
]
expect = [
    # m16n16k8 is four of the machine's m16n8k4, which the notes found too: 512 multiply-adds each.
    { shape = "128x128x64", that = "executed_HMMA_1684_F32_TF32 * 16 * 8 * 4 == M * N * K" },
    # A warp of WM x WN loads WM + WN words a step, four bytes a lane.
    { shape = "128x128x64", that = "32 * executed_LDS == (WM + WN) * K * M * N // (WM * WN) + M * N // 4" },
    # Rows of the tiles lie 64 and 512 bytes apart: what lanes load from several rows meets in a bank.
    { shape = "128x128x64", that = "shared_load_excess > 0" },
]

[params]
BM = 128
BN = 128
BK = 16
WM = 64  # of a warp
WN = 64

[tune]
BM = [64, 128]
BN = [64, 128]
BK = [16, 32]
WM = [16, 32, 64]
WN = [16, 32, 64]
*/

#include "tile.cuh"
#include "tile_load.cuh"
#include "wmma_warp.cuh"

//                  Bs   BK x BN
//               +------+------+          A warp owns WM x WN of the block's BM x BN sums. 8 steps at a time it loads
//               |      |  WN  | 8        its rows of As and columns of Bs, 16 of them a fragment, and multiplies every
//               +------+------+          pair of fragments.
//    As BM x BK
//   +---------+ +------+------+          Fragments belong to the warp as a whole: each lane has four words of one, and
//   |    |    | |      |      |          does not know which. All it may do is the same to every word: round it.
//   +----+----+ +------+------+
//   | WM | 8  | |      | warp | WM
//   +----+----+ +------+------+
template <int BM, int BN, int BK, int WM, int WN>
__global__ void __launch_bounds__(32 * (BM / WM) * (BN / WN)) wmma_tf32(
    int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc)
{
    using Warp = WmmaWarp<WM, WN>;
    constexpr int THREADS = 32 * (BM / WM) * (BN / WN);
    constexpr int TILES = BK * (BM + BN), PATCHES = THREADS / 32 * Warp::PATCH;
    __shared__ __align__(128) float shared[TILES > PATCHES ? TILES : PATCHES];  // the tiles; in the end, the sums
    float* const As = shared;
    float* const Bs = shared + BM * BK;

    const Tile tile = tile_of_block<BM, BN>(N);
    const int rows = M - tile.row, cols = N - tile.col;      // of C from this tile on
    const int y = threadIdx.x / 32 / (BN / WN) * WM;         // [0, BM): the warp's first row in the tile
    const int x = threadIdx.x / 32 % (BN / WN) * WN;         // [0, BN): and column
    const bool a_vectors = rows_are_aligned(A, lda), b_vectors = rows_are_aligned(B, ldb);
    A += tile.row * static_cast<Offset>(lda);
    B += tile.col;

    Warp warp;
    for (int left = sum_depth(K, alpha); left > 0; left -= BK) {
        StagedTile<BM, BK, THREADS> a_tile;
        StagedTile<BK, BN, THREADS> b_tile;
        a_tile.fetch(A, lda, rows, left, a_vectors);
        b_tile.fetch(B, ldb, left, cols, b_vectors);
        a_tile.template put<BK, false>(As);
        b_tile.template put<BN, false>(Bs);
        A += BK;
        B += BK * static_cast<Offset>(ldb);
        __syncthreads();
        warp.template add<BK, BK, BN>(As + y * BK, Bs + x);
        __syncthreads();  // before the next tiles, or the sums, overwrite these
    }
    C += (tile.row + y) * static_cast<Offset>(ldc) + tile.col + x;
    warp.store(shared + threadIdx.x / 32 * Warp::PATCH, C, ldc, rows - y, cols - x, alpha, beta);
}
