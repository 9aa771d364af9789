/* gemmlab
summary = "a thread owns a column of TM results"
idea = "A word of Bs serves TM multiply-adds from a register: 1 + TM shared words for TM products instead of 2 * TM."
source = "Korean worklog on CUDA matmul: its kernel 3"
op = "gemm"
after = "block_tile"
arch = "sm_75"
params = { BM = 64, BN = 64, BK = 8, TM = 8 }
tune = { BM = [32, 64, 128], BN = [32, 64, 128], TM = [4, 8, 16] }
require = [
    "min(BM, BN, BK, TM) >= 1 and BM % TM == 0",
    "BM // TM * BN <= 1024 and BM // TM * BN >= 128 and BN % BK == 0",
    "BM // TM * BN <= (1024 if TM < 8 else 512)",  # 1024 threads have 64 registers each
    "4 * BK * (BM + BN) <= 49152",
]
grid = "ceil_div(M, BM) * ceil_div(N, BN)"
threads = "BM // TM * BN"
expect = [
    # Words of shared memory that the threads read: (1 + TM) / TM a multiply-add, 9K/8 an element, where block_tile
    # reads 2K. The instructions are fewer: the compiler joins four steps k of a row of As, so of 4 + TM loads for four
    # steps TM are LDS.128.
    { shape = "64x128x64", that = "32 * TM * (executed_LDS + 3 * executed_LDS_128) == (1 + TM) * M * N * K" },
    { shape = "64x128x64", that = "4 * executed_LDS_128 == TM * (executed_LDS - executed_LDS_128)" },
    { shape = "64x128x64", config = { TM = 4 }, that = "128 * (executed_LDS + 3 * executed_LDS_128) == 5 * M * N * K" },
    "shared_load_excess == 0",
    "shared_store_excess == 0",
    { shape = "64x128x64", that = "32 * global_load_requests == M * N * K // BM + M * N * K // BN" },
    { shape = "64x128x64", that = "global_load_sectors_per_request == 4 and global_store_sectors_per_request == 4" },
]
*/

#include "epilogue.cuh"
#include "moving_tile.cuh"
#include "tile.cuh"

//                          Bs  BK x BN            a step k of the product
//                    k  [. . . . b . . . .]
//                                                 b = Bs[k][x] is read once into a register and multiplied with TM
//      As  BM x BK                |               words of column k of As, for the TM sums of the thread
//           k
//         [ . ]                   |               a warp is 32 neighbours in a row of C: what it reads of As is one
//    y    [ a ] - - - - - - - -  [c]              address for all lanes, and of Bs 32 words in 32 banks
//         [ a ]    TM            [c]
//         [ a ] - - - - - - - -  [c]
//         [ . ]
template <int BM, int BN, int BK, int TM>
__global__ void __launch_bounds__(BM / TM * BN) thread_tile_1d(
    int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc)
{
    constexpr int THREADS = BM / TM * BN;
    __shared__ __align__(16) float As[BM][BK];
    __shared__ __align__(16) float Bs[BK][BN];

    const Tile tile = tile_of_block<BM, BN>(N);
    const int rows = M - tile.row, cols = N - tile.col;  // of C from this tile on
    const int x = threadIdx.x % BN;                      // [0, BN): column in the tile
    const int y = threadIdx.x / BN * TM;                 // [0, BM) in steps of TM: first row in the tile
    A += tile.row * static_cast<Offset>(lda);
    B += tile.col;
    MovingTiles<BM, BN, BK, THREADS> tiles(A, lda, B, ldb, rows, cols);

    float sums[TM] = {};
    for (int left = sum_depth(K, alpha); left > 0; left -= BK) {
        tiles.load(As, Bs, left);  // between two barriers: nobody needs the tiles before, everybody sees these
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            const float b = Bs[k][x];
#pragma unroll
            for (int i = 0; i < TM; ++i) sums[i] += As[y + i][k] * b;
        }
    }

    C += (tile.row + y) * static_cast<Offset>(ldc) + tile.col + x;
#pragma unroll
    for (int i = 0; i < TM; ++i)
        if (i < rows - y && x < cols) store_element(C + i * static_cast<Offset>(ldc), alpha, sums[i], beta);
}
