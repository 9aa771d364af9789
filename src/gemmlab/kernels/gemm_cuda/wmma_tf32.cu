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

#include "four.cuh"
#include "tile.cuh"
#include "wmma_tf32.cuh"

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
    constexpr int THREADS = 32 * (BM / WM) * (BN / WN);
    constexpr int A_COUNT = BM * BK / (4 * THREADS), B_COUNT = BK * BN / (4 * THREADS);  // float4 a thread brings
    constexpr int TILES = BK * (BM + BN), PATCHES = THREADS / 32 * WMMA_PATCH;
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

    WmmaSums sums[WM / 16][WN / 16];
    for (int left = sum_depth(K, alpha); left > 0; left -= BK) {
        float4 a_next[A_COUNT], b_next[B_COUNT];
#pragma unroll
        for (int i = 0; i < A_COUNT; ++i) {
            const int row = (threadIdx.x + i * THREADS) / (BK / 4);      // [0, BM)
            const int col = (threadIdx.x + i * THREADS) % (BK / 4) * 4;  // [0, BK) in steps of 4
            a_next[i] = load_four(A + row * static_cast<Offset>(lda) + col, row < rows ? left - col : 0, a_vectors);
        }
#pragma unroll
        for (int i = 0; i < B_COUNT; ++i) {
            const int row = (threadIdx.x + i * THREADS) / (BN / 4);      // [0, BK)
            const int col = (threadIdx.x + i * THREADS) % (BN / 4) * 4;  // [0, BN) in steps of 4
            b_next[i] = load_four(B + row * static_cast<Offset>(ldb) + col, row < left ? cols - col : 0, b_vectors);
        }
        // Thread by thread and float4 by float4 the tiles lie in shared memory as they were read.
#pragma unroll
        for (int i = 0; i < A_COUNT; ++i) put_four<false, BK>(As + 4 * (threadIdx.x + i * THREADS), a_next[i]);
#pragma unroll
        for (int i = 0; i < B_COUNT; ++i) put_four<false, BN>(Bs + 4 * (threadIdx.x + i * THREADS), b_next[i]);
        A += BK;
        B += BK * static_cast<Offset>(ldb);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < BK; k += 8) {
            WmmaInput a[WM / 16], b[WN / 16];
#pragma unroll
            for (int i = 0; i < WM / 16; ++i) load_rounded_a<BK>(a[i], As + (y + 16 * i) * BK + k);
#pragma unroll
            for (int j = 0; j < WN / 16; ++j) load_rounded_b<BN>(b[j], Bs + k * BN + x + 16 * j);
#pragma unroll
            for (int i = 0; i < WM / 16; ++i)
#pragma unroll
                for (int j = 0; j < WN / 16; ++j) add_product(sums[i][j], a[i], b[j]);
        }
        __syncthreads();  // before the next tiles, or the sums, overwrite these
    }
    C += (tile.row + y) * static_cast<Offset>(ldc) + tile.col + x;
    store_wmma(shared + threadIdx.x / 32 * WMMA_PATCH, C, ldc, rows - y, cols - x, alpha, sums, beta);
}
