/* gemmlab
summary = "WMMA with cp.async in several stages, padded tiles and grouped blocks"
idea = "Copies of later blocks of k are in flight while tensor cores work on this one; padding keeps lanes apart."
source = "Chinese GEMM notes on an RTX 4050: their fastest WMMA kernel, and why three stages are slow"
op = "gemm"
after = "wmma_tf32"
arch = "sm_80"
precision = "tf32"
grid = "ceil_div(M, BM) * ceil_div(N, BN)"
threads = "32 * (BM // WM) * (BN // WN)"
smem_bytes = "4 * STAGES * (BM * (BK + A_PAD) + BK * (BN + B_PAD))"
require = [
    "min(BM, BN, BK, WM, WN) >= 1 and BM % WM == 0 and BN % WN == 0",
    "WM % 16 == 0 and WN % 16 == 0 and WM * WN <= 4096 and BK % 8 == 0",
    "BM * BK % (128 * (BM // WM) * (BN // WN)) == 0 and BN * BK % (128 * (BM // WM) * (BN // WN)) == 0",
    "128 * (BM // WM) * (BN // WN) % max(BK, BN) == 0",
    "2 <= STAGES <= 5 and GROUP >= 1 and 0 <= MODULO <= 1",
    "min(A_PAD, B_PAD) >= 0 and A_PAD % 4 == 0 and B_PAD % 4 == 0",
    "4 * STAGES * (BM * (BK + A_PAD) + BK * (BN + B_PAD)) <= 101376",
]
expect = [
    { shape = "128x128x64", that = "shared_load_excess == 0" },
    { shape = "128x128x64", config = { A_PAD = 0 }, that = "shared_load_excess > 0" },
    { shape = "128x128x64", config = { B_PAD = 0 }, that = "shared_load_excess > 0" },
    # Everything comes by cp.async, 16 bytes a lane: all that is left to LDG is nothing.
    { shape = "128x128x64", that = "512 * executed_LDGSTS_128 == 4 * K * (M + N) and executed_LDG == 0" },
    { shape = "128x128x64", that = "executed_HMMA_1684_F32_TF32 * 16 * 8 * 4 == M * N * K" },
    # One barrier a block of k, one for the last and one before the sums take the tiles' place.
    { shape = "128x128x64", that = "barriers == (K // BK + 1) * (M // WM) * (N // WN)" },
]

[params]
BM = 128
BN = 128
BK = 16
WM = 64  # of a warp
WN = 64
STAGES = 3
A_PAD = 4   # floats added to rows: the 8 rows and 4 steps a load reads of A are 32 banks when rows lie 4 mod 8 apart
B_PAD = 8   # of B, 4 steps and 8 columns, when they lie 8 mod 32 apart
GROUP = 8   # tiles across a strip of the order in which blocks walk C
MODULO = 0  # the stage of a block of k: 1 by the remainder of a division, as in the source, 0 by counting

[tune]
WM = [32, 64]
WN = [32, 64]
BK = [16, 32]
STAGES = [2, 3, 4]
GROUP = [1, 8]
MODULO = [0, 1]
*/

#include "block_order.cuh"
#include "copied_tile.cuh"
#include "tile.cuh"
#include "wmma_tf32.cuh"

//   STAGES = 3        block of k   0   1   2   3   4
//   copies under way               2   3   4            each into the stage of the block before, which all warps have
//   tensor cores                   0   1   2   3   4    left when they pass the barrier that begins this one
//   stage                          0   1   2   0   1
template <int BM, int BN, int BK, int WM, int WN, int STAGES, int A_PAD, int B_PAD, int GROUP, int MODULO>
__global__ void __launch_bounds__(32 * (BM / WM) * (BN / WN)) wmma_tf32_pipelined(
    int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc)
{
    constexpr int THREADS = 32 * (BM / WM) * (BN / WN);
    constexpr int A_LD = BK + A_PAD, B_LD = BN + B_PAD;
    using ATile = CopiedTile<BM, BK, A_LD, THREADS, ALONG_K>;
    using BTile = CopiedTile<BK, BN, B_LD, THREADS, ACROSS_K>;
    constexpr int STAGE = ATile::FLOATS + BTile::FLOATS;
    static_assert(THREADS / 32 * WMMA_PATCH <= STAGES * STAGE, "the sums take the tiles' place in the end");
    extern __shared__ __align__(128) float stages[];  // STAGES times a tile of A and one of B

    const Tile tile = tile_in_order<BM, BN, GROUPED, GROUP>(M, N);
    const int rows = M - tile.row, cols = N - tile.col;  // of C from this tile on
    const int y = threadIdx.x / 32 / (BN / WN) * WM;  // [0, BM): the warp's first row in the tile
    const int x = threadIdx.x / 32 % (BN / WN) * WN;  // [0, BN): and column

    WmmaSums sums[WM / 16][WN / 16];
    const int depth = sum_depth(K, alpha);
    const int blocks = static_cast<int>(ceil_div(depth, BK));
    if (blocks > 0) {
        ATile a_tile(A + tile.row * static_cast<Offset>(lda), lda, rows, depth);
        BTile b_tile(B + tile.col, ldb, cols, depth);
        const auto fetch = [&](int block, int stage) {
            if (block < blocks) {
                a_tile.copy(stages + stage * STAGE, block);
                b_tile.copy(stages + stage * STAGE + ATile::FLOATS, block);
            }
            commit_copies();  // after the last block an empty group: there is one for each block
        };
#pragma unroll
        for (int block = 0; block < STAGES - 1; ++block) fetch(block, block);
        int full = 0;           // the stage that is multiplied
        int free = STAGES - 1;  // the one computed before, which the next copies fill
#pragma unroll 1
        for (int block = 0; block < blocks; ++block) {
            if (MODULO) {
                full = block % STAGES;
                free = (block + STAGES - 1) % STAGES;
            }
            wait_for_copies<STAGES - 2>();
            __syncthreads();
            fetch(block + STAGES - 1, free);
            const float* As = stages + full * STAGE + y * A_LD;  // of the warp
            const float* Bs = stages + full * STAGE + ATile::FLOATS + x;
#pragma unroll
            for (int k = 0; k < BK; k += 8) {
                WmmaInput a[WM / 16], b[WN / 16];
#pragma unroll
                for (int i = 0; i < WM / 16; ++i) load_rounded_a<A_LD>(a[i], As + 16 * i * A_LD + k);
#pragma unroll
                for (int j = 0; j < WN / 16; ++j) load_rounded_b<B_LD>(b[j], Bs + k * B_LD + 16 * j);
#pragma unroll
                for (int i = 0; i < WM / 16; ++i)
#pragma unroll
                    for (int j = 0; j < WN / 16; ++j) add_product(sums[i][j], a[i], b[j]);
            }
            free = full;
            full = full == STAGES - 1 ? 0 : full + 1;
        }
        __syncthreads();  // before the sums take the tiles' place
    }
    C += (tile.row + y) * static_cast<Offset>(ldc) + tile.col + x;
    store_wmma(stages + threadIdx.x / 32 * WMMA_PATCH, C, ldc, rows - y, cols - x, alpha, sums, beta);
}
