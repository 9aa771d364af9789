/* gemmlab
summary = "products of different shapes, anywhere in memory, in one launch: a block looks its product up"
idea = "A table in the arguments, searched in 6 steps, replaces the strides by which batched finds matrices."
source = "grouped GEMM as in cuBLAS (gemmGroupedBatched) and CUTLASS, with the table by value; the tile is async_copy's"
op = "batch"
arch = "sm_80"
in_order = true
transposes = ["nn", "nt", "tn", "tt"]
args = "alpha, A, B, beta, C, batch, ceil_div(M, BM) * ceil_div(N, BN), group"
grid = "batch * ceil_div(M, BM) * ceil_div(N, BN)"
threads = "(BM // TM) * (BN // TN)"
smem_bytes = "4 * STAGES * BK * (BM + BN + 8)"
require = [
    "batch <= 64 and min(lda, ldb, ldc) >= 1",  # rows of any length: they are in the table
    "min(BM, BN, BK, TM, TN) >= 4 and TM % 4 == 0 and TN % 4 == 0 and BK % 8 == 0",
    "BM % 32 == 0 and BM & BM - 1 == 0 and BN % 32 == 0 and BN & BN - 1 == 0",
    "BM % (TM * (4 if TM > TN else 8)) == 0 and BN % (TN * (8 if TM > TN else 4)) == 0",  # warps of 4 x 8 or 8 x 4
    "64 <= (BM // TM) * (BN // TN) <= 256 and TM * TN <= 128",
    "4 * (BM // TM) * (BN // TN) <= BK * min(BM, BN)",                                     # a float4 a thread
    "TM * TN >= 64 or BM * BN <= 4096",                                                    # small threads, small tiles
    "2 <= STAGES <= 4 and 4 * STAGES * BK * (BM + BN + 8) <= 101376",
]
expect = [
    # The table is in the constant bank: nothing but the operands is read from memory.
    { shape = "4*64x64x64", that = "8 * async_copy_sectors == batch * (M * K + K * N) and global_load_requests == 0" },
    { shape = "4*64x64x64", that = "local_load_requests == 0 and local_store_requests == 0" },
]

[params]
BM = 64
BN = 64
BK = 16
TM = 8
TN = 8
STAGES = 3

[tune]
BM = [32, 64, 128]
BN = [32, 64, 128, 256]
BK = [8, 16]
TM = [4, 8, 16]
TN = [4, 8]
*/

#include "block_product.cuh"

struct GroupProduct {
    long long a, b, c;  // elements from A, B and C to this product's matrices
    int M, N, K, lda, ldb, ldc;
    unsigned first;     // its first tile among all of the launch, in units
    unsigned unused;
};
struct Group {
    GroupProduct products[64];
};

//   product          0            1       2           3
//   shape        3 x 2 tiles    1 x 2   2 x 2         ...
//   first            0            6       8          12
//   blockIdx.x   0 1 2 3 4 5  |  6 7  | 8 9 10 11 | 12 ...
//
// A block belongs to the last product whose first tile does not come after it, found by halving the table. All threads
// of a block look for the same one, so each step is one read from the constant bank. Products without a tile are not in
// the table. A unit is one tile, or all tiles of a product where products are alike.
template <int BM, int BN, int BK, int TM, int TN, int STAGES, bool TRANS_A, bool TRANS_B>
__global__ void __launch_bounds__((BM / TM) * (BN / TN), resident_products(BM, BN, (BM / TM) * (BN / TN)))
grouped(
    float alpha, const float* A, const float* B, float beta, float* C, int count, unsigned unit,
    const __grid_constant__ Group group)
{
    extern __shared__ __align__(16) float shared[];  // STAGES buffers, each a tile of A and one of B
    int mine = 0;
    for (int behind = count; behind - mine > 1;) {
        const int middle = (mine + behind) / 2;
        if (group.products[middle].first * unit <= blockIdx.x) mine = middle;
        else behind = middle;
    }
    const GroupProduct& p = group.products[mine];
    const unsigned at = blockIdx.x - p.first * unit, across = ceil_div(p.N, BN);
    const Tile tile = {static_cast<int>(at / across) * BM, static_cast<int>(at % across) * BN};
    store_product_tile<BM, BN, BK, TM, TN, STAGES, TRANS_A, TRANS_B>(
        {p.M, p.N, p.K, A + p.a, p.lda, B + p.b, p.ldb, C, p.ldc}, tile, alpha, beta, shared,
        [&](const Product& product) { return product.C + p.c; });
}
