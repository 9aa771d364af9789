/* gemmlab
summary = "blocks walk the grid in strips, up and down, on top of async_copy"
idea = "Blocks that run at the same time lie in a compact patch of C, so they read fewer different tiles of A and B."
source = "Chinese GPU GEMM worklog: its gemm_block_swizzle, in a serpentine or in layers of a given stride"
op = "gemm"
after = "async_copy"
arch = "sm_80"
transposes = ["nn", "nt", "tn", "tt"]
grid = "ceil_div(M, BM) * ceil_div(N, BN)"
threads = "(BM // TM) * (BN // TN)"
smem_bytes = "4 * STAGES * BK * (BM + BN + 8)"
require = [
    "min(BM, BN, BK, TM, TN) >= 4 and TM % 4 == 0 and TN % 4 == 0 and BK % 8 == 0",
    "BM % 32 == 0 and BM & BM - 1 == 0 and BN % 32 == 0 and BN & BN - 1 == 0",
    "BM % (TM * (4 if TM > TN else 8)) == 0 and BN % (TN * (8 if TM > TN else 4)) == 0",  # warps of 4 x 8 or 8 x 4
    "BM * BN <= 32768 and TM * TN <= 128",                                                # registers
    "min(BM, BN) % ((BM // TM) * (BN // TN) // 2) == 0",                                  # float4 a thread
    "2 <= STAGES <= 4 and 0 <= ORDER <= 2 and GROUP >= 1 and 4 * STAGES * BK * (BM + BN + 8) <= 101376",
]
expect = [
    # 8 x 32 tiles: what the blocks that run together read, each tile of A or B counted once a wave.
    { shape = "1024x8192x8", that = "6 * async_copy_sectors_distinct < async_copy_sectors" },
    { shape = "1024x8192x8", config = { ORDER = 0 }, that = "6 * async_copy_sectors_distinct > async_copy_sectors" },
    "shared_load_excess == 0 and async_copy_excess == 0",
]

[params]
BM = 128
BN = 256
BK = 8
TM = 16
TN = 8
STAGES = 3
ORDER = 2  # 0 row by row, 1 strips, 2 strips up and down
GROUP = 8  # tiles across a strip

[tune]
BM = [128, 256]
BN = [128, 256]
TM = [8, 16]
ORDER = [1, 2]
GROUP = [4, 8, 16]
*/

#include "block_order.cuh"
#include "staged_product.cuh"

//   C in tiles, the 12 blocks that run together              tiles of A and B that they read
//
//   row by row     # # # # # # # # # # # #                   1 + 12
//                  . . . . . . . . . . . .
//
//   strips of 4    # # # # . . . . . . . .
//                  # # # # . . . . . . . .                   3 + 4
//                  # # # # . . . . . . . .
//
// All of them move along k together, so at any time L2 must hold only the tiles of a few k-blocks. What is won is
// traffic between L2 and memory, and matters where one wave's rows of A and columns of B together exceed L2. Every
// order is drawn in block_order.cuh; the blocks' own work is that of async_copy.
template <
    int BM, int BN, int BK, int TM, int TN, int STAGES, int ORDER, int GROUP, bool TRANS_A, bool TRANS_B>
__global__ void __launch_bounds__((BM / TM) * (BN / TN), resident_blocks(BM, BN, BK, (BM / TM) * (BN / TN)))
block_swizzle(
    int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc)
{
    extern __shared__ __align__(16) float shared[];
    using Product = StagedProduct<BM, BN, BK, TM, TN, Z_ORDER, STAGES, true, true, TRANS_A, TRANS_B>;
    Tile tile = tile_in_order<BM, BN, ORDER, GROUP>(M, N);
    // Nothing is done here. But ptxas no longer sees how the place was found, and gives the main loop the schedule of
    // async_copy; knowing it, it found one that is 5 % slower.
    asm volatile("" : "+r"(tile.row), "+r"(tile.col));
    Product::store(shared, tile, M, N, K, alpha, A, lda, B, ldb, beta, C, ldc);
}
