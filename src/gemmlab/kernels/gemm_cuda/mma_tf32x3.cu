/* gemmlab
summary = "float32 operands as two TF32 numbers each, split in registers, three products by mma.sync"
idea = "Three products of TF32 parts have a float32's accuracy; parts made in registers take no memory and no launch."
source = "Ootomo and Yokota, Recovering single precision accuracy from Tensor Cores (2022); CUTLASS's 3xTF32"
op = "gemm"
after = "mma_tf32_pipelined"
branch = true
arch = "sm_80"
precision = "tf32x3"
transposes = ["nn", "nt", "tn", "tt"]
grid = "ceil_div(M, BM) * ceil_div(N, BN)"
threads = "32 * (BM // WM) * (BN // WN)"
smem_bytes = "4 * STAGES * BK * (BM + BN)"
require = [
    "BM % WM == 0 and BN % WN == 0 and WM % 32 == 0 and WN % 32 == 0 and WM * WN <= 2048",
    "(BM // WM) * (BN // WN) == 8 and BM * BN % 2048 == 0",  # 256 threads
    "(BK == 16 or BK == 32) and 2048 % max(BM, BN) == 0",
    "2 <= STAGES <= 5 and GROUP >= 1",
    "4 * STAGES * BK * (BM + BN) <= 166912",
]
expect = [
    { shape = "128x128x64", that = "executed_HMMA_1688_F32_TF32 * 16 * 8 * 8 == 3 * M * N * K" },
    { shape = "128x128x64", that = "128 * shared_load_requests == (WM + WN) * (K + 8) * M * N // (WM * WN)" },
    { shape = "128x128x64", that = "shared_load_excess == 0 and async_copy_excess == 0" },
    # FMA lanes only split and add; no tile is computed exactly.
    { shape = "128x128x64", that = "executed_FFMA == 0 and local_store_requests == 0" },
]

[params]
BM = 128
BN = 128
BK = 32
WM = 32  # of a warp
WN = 64
STAGES = 3
GROUP = 8  # tiles across a strip of the order in which blocks walk C

[tune]
BM = [64, 128]
BN = [64, 128, 256]
BK = [16, 32]
WN = [32, 64]
STAGES = [2, 3, 4]
*/

#include "block_order.cuh"
#include "dealt_store.cuh"
#include "exact_tile.cuh"
#include "mma_parts.cuh"
#include "specialize.cuh"
#include "tf32_tile.cuh"
#include "tile.cuh"

// Element by element a = a1 + a2 and b = b1 + b2, in TF32, so
//
//     a b  =  a1 b1  +  a1 b2 + a2 b1  +  a2 b2, which is left out: at most 2^-24 of the first
//
// The pipeline is that of mma_tf32_pipelined. A warp splits the words that it has read, so an operand is split by each
// warp that reads it, and no memory holds parts:
//
//   a step     split the words | read the next ones | for 16 x 8 results: a1 b2, a2 b1, a1 b1, sums += all three
//
// Tensor cores cut off what a sum does not hold. So the small products come first, and what a step gives joins a float32
// sum at once, by an addition that rounds.
//
// Parts hold magnitudes from 2^-100 to 2^60. A tile that meets others, NaN or infinities is computed again by
// multiply-adds (exact_tile.cuh), and its products are forgotten.

struct ThreeProducts : OneSum<ThreeProducts> {
    static constexpr int COUNT = 3;
    static __device__ constexpr int a_part(int product) { return product == 1; }
    static __device__ constexpr int b_part(int product) { return product == 0; }
};

// The block's tile of C. `Parts` splits floats and multiplies parts, `Products` adds the products of a step to the
// sums, `lines` has the scales of rows of A and columns of B.
template <
    class Parts, class Products, int BM, int BN, int BK, int WM, int WN, int STAGES, int GROUP, bool TRANS_A,
    bool TRANS_B, class Lines = UnscaledLines>
__device__ __forceinline__ void multiply_by_parts(
    float* stages, int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta,
    float* C, int ldc, const Lines& lines = {})
{
    constexpr int THREADS = EXACT_THREADS;
    constexpr bool A_LIES = TRANS_A ? ACROSS_K : ALONG_K, B_LIES = TRANS_B ? ALONG_K : ACROSS_K;
    using ATile = Tf32Tile<BM, BK, THREADS, A_LIES>;
    using BTile = Tf32Tile<BN, BK, THREADS, B_LIES>;
    constexpr int STAGE = ATile::FLOATS + BTile::FLOATS;
    constexpr int A_STRIPS = WM / 16, B_STRIPS = WN / 16;

    const Tile tile = tile_in_order<BM, BN, GROUPED, GROUP>(M, N);
    // A tile that would reach over the end moves back to end there, as in mma_tf32_pipelined.
    const int row = whole_tile<BM>(tile.row, M, TRANS_A), col = whole_tile<BN>(tile.col, N, true);
    const int rows = M - row, cols = N - col;  // of C from there on
    const int warp_row = threadIdx.x / 32 / (BN / WN) * WM;  // [0, BM): the warp's first row in the tile
    const int warp_col = threadIdx.x / 32 % (BN / WN) * WN;  // [0, BN)

    const int depth = sum_depth(K, alpha);
    const int blocks = static_cast<int>(ceil_div(depth, BK));
    float sums[A_STRIPS][2 * B_STRIPS][4] = {};
    bool held = lines.template suit<BM, BN>(row, col);  // parts hold the words that this thread has looked at
    if (blocks > 0 && held) {
        ATile a_tile(A + (TRANS_A ? row : row * static_cast<Offset>(lda)), lda, rows, depth);
        BTile b_tile(B + (TRANS_B ? col * static_cast<Offset>(ldb) : col), ldb, cols, depth);
        const StripReader<BM, BK, A_LIES> a_reader(warp_row);
        const StripReader<BN, BK, B_LIES> b_reader(warp_col);
        typename Parts::Range range;
        typename Parts::Scale a_scales[A_STRIPS], b_scales[B_STRIPS];
        lines.load_of_a(a_scales, row + warp_row);
        lines.load_of_b(b_scales, col + warp_col);
        const int a_turn = warp_col / WN;  // warps that read the same words take turns in looking at them
        const int b_turn = warp_row / WM;

        // Adds the products of blocks first .. end - 1 of k to the sums.
        const auto multiply = [&](auto all_whole, int first, int end) {
            const auto fetch = [&](int block, int stage) {
                if (block < end) {
                    float* const a_stage = stages + stage;
                    float* const b_stage = a_stage + ATile::FLOATS;
                    if constexpr (decltype(all_whole)()) {
                        a_tile.copy_whole(a_stage);
                        b_tile.copy_whole(b_stage);
                    } else {
                        a_tile.copy(a_stage, block);
                        b_tile.copy(b_stage, block);
                    }
                }
                commit_copies();  // after the last block an empty group: there is one for each block
            };
            Strip a_words[Parts::STEPS][A_STRIPS], b_words[Parts::STEPS][B_STRIPS];
            const auto read = [&](int stage, int step) {
#pragma unroll
                for (int s = 0; s < Parts::STEPS; ++s) {
                    a_reader.load(a_words[s], stages + stage, step + s);
                    b_reader.load(b_words[s], stages + stage + ATile::FLOATS, step + s);
                }
            };

#pragma unroll
            for (int ahead = 0; ahead < STAGES - 1; ++ahead) fetch(first + ahead, ahead * STAGE);
            wait_for_copies<STAGES - 2>();
            __syncthreads();
            read(0, 0);
            int full = 0;                     // the stage that is multiplied
            int free = (STAGES - 1) * STAGE;  // the one computed before, which the next copies fill
#pragma unroll 1
            for (int block = first; block < end; ++block) {
#pragma unroll
                for (int step = 0; step < BK / 8; step += Parts::STEPS) {
                    if (step == 0) fetch(block + STAGES - 1, free);
                    typename Parts::Words a[A_STRIPS][Parts::PARTS], b[B_STRIPS][Parts::PARTS];
                    split<Parts>(a_words, a_scales, a);
                    split<Parts>(b_words, b_scales, b);
                    if (a_turn == step / Parts::STEPS % (BN / WN))
#pragma unroll
                        for (int s = 0; s < Parts::STEPS; ++s) range.watch(a_words[s]);
                    if (b_turn == step / Parts::STEPS % (BM / WM))
#pragma unroll
                        for (int s = 0; s < Parts::STEPS; ++s) range.watch(b_words[s]);
                    if (step == BK / 8 - Parts::STEPS) {
                        wait_for_copies<STAGES - 2>();
                        __syncthreads();
                        free = full;
                        // Behind the last block there is none; its own stage is read again, for nothing.
                        if (block + 1 < end) full = full == (STAGES - 1) * STAGE ? 0 : full + STAGE;
                    }
                    // The next words are under way while these are multiplied.
                    read(full, (step + Parts::STEPS) % (BK / 8));
#pragma unroll
                    for (int i = 0; i < A_STRIPS; ++i)
#pragma unroll
                        for (int j = 0; j < 2 * B_STRIPS; ++j)
                            Products::template add<Parts>(sums[i][j], a[i], b[j / 2], j % 2);
                }
            }
        };

        // Whole blocks have a loop of their own, without guards; the other one begins where it ends.
        const int whole = min(a_tile.whole_blocks(), b_tile.whole_blocks());
        if (whole > 0) multiply(Known<true>(), 0, whole);
        __syncthreads();  // the stages are still being read
        if (whole < blocks) multiply(Known<false>(), whole, blocks);
        held = range.holds();
    }
    if (__syncthreads_or(!held)) {
        const auto none = [](int, int) { return false; };
        store_exact_tile<BM, BN, TRANS_A, TRANS_B, 0>(
            stages, depth, A, lda, tile.row, B, ldb, tile.col, alpha, beta,
            C + tile.row * static_cast<Offset>(ldc) + tile.col, ldc, M - tile.row, N - tile.col, false, none);
        return;
    }

    lines.undo(sums, row + warp_row, col + warp_col);
    store_dealt(C, ldc, tile, row, col, rows, cols, warp_row, warp_col, alpha, sums, beta);
}

template <int BM, int BN, int BK, int WM, int WN, int STAGES, int GROUP, bool TRANS_A, bool TRANS_B>
__global__ void __launch_bounds__(EXACT_THREADS) mma_tf32x3(
    int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc)
{
    extern __shared__ __align__(128) float stages[];  // STAGES times a tile of A and one of B
    multiply_by_parts<TwoTf32, ThreeProducts, BM, BN, BK, WM, WN, STAGES, GROUP, TRANS_A, TRANS_B>(
        stages, M, N, K, alpha, A, lda, B, ldb, beta, C, ldc);
}
