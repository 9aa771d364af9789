/* gemmlab
summary = "all products of a batch in one launch: a block finds its product, then its tile"
idea = "A launch costs more than a small product, and a small product leaves a GPU idle: one launch for all fills it."
source = "batched GEMM as in cuBLAS (gemmStridedBatched) and MAGMA; the tile is async_copy's, in several sizes"
op = "batch"
arch = "sm_80"
in_order = true
transposes = ["nn", "nt", "tn", "tt"]
args = "M, N, K, alpha, A, lda, B, ldb, beta, C, ldc, axes"
grid = "batch * ceil_div(M, BM) * ceil_div(N, BN)"
threads = "(BM // TM) * (BN // TN)"
smem_bytes = "4 * STAGES * BK * (BM + BN + 8)"
require = [
    "min(BM, BN, BK, TM, TN) >= 4 and TM % 4 == 0 and TN % 4 == 0 and BK % 8 == 0",
    "BM % 32 == 0 and BM & BM - 1 == 0 and BN % 32 == 0 and BN & BN - 1 == 0",
    "BM % (TM * (4 if TM > TN else 8)) == 0 and BN % (TN * (8 if TM > TN else 4)) == 0",  # warps of 4 x 8 or 8 x 4
    "64 <= (BM // TM) * (BN // TN) <= 256 and TM * TN <= 128",
    "4 * (BM // TM) * (BN // TN) <= BK * min(BM, BN)",                                     # a float4 a thread
    "TM * TN >= 64 or BM * BN <= 4096",                                                    # small threads, small tiles
    "2 <= STAGES <= 4 and 4 * STAGES * BK * (BM + BN + 8) <= 101376",
]
expect = [
    # Nothing is read twice, and nothing but the operands: B comes 16 bytes a lane, A turned by 4.
    { shape = "4*64x64x64", that = "8 * async_copy_sectors == batch * (M * K + K * N) and global_load_requests == 0" },
    { shape = "4*64x64x64", that = "128 * async_copy_requests == batch * (4 * M * K + K * N)" },
    { shape = "4*64x64x64", that = "shared_load_excess == 0 and async_copy_excess == 0" },
    # A block of two warps for each product: a barrier a warp and k-block.
    { shape = "9*32x32x32", config = { BM = 32, BN = 32, TM = 4, TN = 4 }, that = "barriers == batch * 2 * K // BK" },
]

[params]
BM = 64
BN = 64
BK = 8
TM = 8
TN = 8
STAGES = 3

[tune]
BM = [32, 64, 128]
BN = [32, 64, 128, 256]
BK = [8, 16]
TM = [4, 8, 16]
TN = [4, 8]
STAGES = [3]
*/

#include "batch_axes.cuh"
#include "block_product.cuh"

//   blockIdx.x    0   1   2   3 | 4   5   6   7 | 8   9  10  11        tiles of one product stand together: blocks
//   product              0      |       1       |       2              that run at the same time share its A and B
//   tile          0   1   2   3 | 0   1   2   3 | 0   1   2   3        in L2
template <int BM, int BN, int BK, int TM, int TN, int STAGES, bool TRANS_A, bool TRANS_B>
__global__ void __launch_bounds__((BM / TM) * (BN / TN), resident_products(BM, BN, (BM / TM) * (BN / TN)))
batched(
    int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc,
    const __grid_constant__ BatchAxes axes)
{
    extern __shared__ __align__(16) float shared[];  // STAGES buffers, each a tile of A and one of B
    const unsigned across = ceil_div(N, BN), tiles = across * ceil_div(M, BM);
    const unsigned at = blockIdx.x % tiles;
    const unsigned product = blockIdx.x / tiles;
    A += way_to_product<0>(product, axes);
    B += way_to_product<1>(product, axes);
    const Tile tile = {static_cast<int>(at / across) * BM, static_cast<int>(at % across) * BN};
    store_product_tile<BM, BN, BK, TM, TN, STAGES, TRANS_A, TRANS_B>(
        {M, N, K, A, lda, B, ldb, C, ldc}, tile, alpha, beta, shared,
        [&](const Product& p) {
            unsigned block;  // read anew, so that the number of the product takes no register meanwhile
            asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(block));
            return p.C + way_to_product<2>(block / (ceil_div(p.N, BN) * ceil_div(p.M, BM)), axes);
        });
}
