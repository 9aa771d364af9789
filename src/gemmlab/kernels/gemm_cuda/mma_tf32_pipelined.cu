/* gemmlab
summary = "tensor cores through mma.sync with TF32 inputs, swizzled shared memory, cp.async in several stages"
idea = "The layout of fragments is known, so 16-byte loads fetch what WMMA fetches word by word, without bank conflicts."
source = "beyond the Chinese GEMM notes, which end with WMMA; the fragments' layouts are those of PTX's mma.m16n8k8"
op = "gemm"
after = "wmma_tf32_pipelined"
arch = "sm_80"
precision = "tf32"
transposes = ["nn", "nt", "tn", "tt"]
grid = "ceil_div(M, BM) * ceil_div(N, BN)"
threads = "32 * (BM // WM) * (BN // WN)"
smem_bytes = "4 * STAGES * BK * (BM + BN)"
require = [
    "min(BM, BN, BK, WM, WN) >= 1 and BM % WM == 0 and BN % WN == 0 and WM % 32 == 0 and WN % 32 == 0",
    "BK == 16 or BK == 32",
    "BM * BK % (128 * (BM // WM) * (BN // WN)) == 0 and BN * BK % (128 * (BM // WM) * (BN // WN)) == 0",
    "8 * (BM // WM) * (BN // WN) % BK == 0 and 128 * (BM // WM) * (BN // WN) % max(BM, BN) == 0",
    "2 <= STAGES <= 5 and GROUP >= 1 and WM * WN <= 4096 and BM * BN <= 32768",
    "4 * STAGES * BK * (BM + BN) <= 232448",
]
expect = [
    { shape = "128x256x64", that = "executed_HMMA_1688_F32_TF32 * 16 * 8 * 8 == M * N * K" },
    # Operands come 16 bytes a lane and without a bank conflict, WM + WN words a step of a warp, and 8 steps for nothing
    # behind the last; none is loaded word by word, as WMMA does.
    { shape = "128x256x64", that = "128 * shared_load_requests == (WM + WN) * (K + 8) * M * N // (WM * WN)" },
    { shape = "128x256x64", that = "shared_load_requests == executed_LDSM + executed_LDS_128" },
    { shape = "128x256x64", that = "shared_load_excess == 0 and async_copy_excess == 0" },
    { shape = "128x256x64", that = "128 * async_copy_requests == K * (M + N) and global_load_requests == 0" },
    # One instruction rounds a word; cvt.rna has an FSETP as well, which makes one for each product.
    { shape = "128x256x64", that = "8 * executed_FSETP < executed_HMMA_1688_F32_TF32" },
    # Four lanes store 64 bytes of a row beside each other: whole sectors.
    { shape = "128x256x64", that = "128 * executed_STG_128 == M * N and 32 * global_store_sectors == 4 * M * N" },
    { shape = "128x256x64", that = "barriers == (K // BK + 2) * (M // WM) * (N // WN)" },
    { shape = "128x256x64", config = { BK = 16, STAGES = 2 }, that = "shared_load_excess + async_copy_excess == 0" },
]

[params]
BM = 128
BN = 256
BK = 32
WM = 64  # of a warp: 64 x 64 results take 32 mma.sync and 32 registers of operands a step of 8 along k
WN = 64
STAGES = 2  # 96 KB, all that sm_89 has; three or four take more from other cards
GROUP = 8  # tiles across a strip of the order in which blocks walk C

[tune]
BM = [128, 256]
BN = [128, 256]
BK = [16, 32]
STAGES = [2, 3, 4, 5]
GROUP = [1, 8]
*/

#include "block_order.cuh"
#include "dealt_store.cuh"
#include "tf32_tile.cuh"
#include "tile.cuh"

template <bool ALL>
struct Whole {
    static constexpr bool value = ALL;
};

template <int BM, int BN, int BK, int WM, int WN, int STAGES, int GROUP, bool TRANS_A, bool TRANS_B>
__global__ void __launch_bounds__(32 * (BM / WM) * (BN / WN)) mma_tf32_pipelined(
    int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc)
{
    constexpr int THREADS = 32 * (BM / WM) * (BN / WN);
    constexpr bool A_LIES = TRANS_A ? ACROSS_K : ALONG_K, B_LIES = TRANS_B ? ALONG_K : ACROSS_K;
    using ATile = Tf32Tile<BM, BK, THREADS, A_LIES>;
    using BTile = Tf32Tile<BN, BK, THREADS, B_LIES>;
    constexpr int STAGE = ATile::FLOATS + BTile::FLOATS;
    extern __shared__ __align__(128) float stages[];  // STAGES times a tile of A and one of B

    const Tile tile = tile_in_order<BM, BN, GROUPED, GROUP>(M, N);
    // A tile that would reach beyond the end moves back to end there, if its rows stay aligned: then it is whole. A
    // result that two tiles compute is stored by the first.
    const int row = whole_tile<BM>(tile.row, M, TRANS_A), col = whole_tile<BN>(tile.col, N, true);
    const int rows = M - row, cols = N - col;  // of C from there on
    A += TRANS_A ? row : row * static_cast<Offset>(lda);
    B += TRANS_B ? col * static_cast<Offset>(ldb) : col;
    const int warp_row = threadIdx.x / 32 / (BN / WN) * WM;  // [0, BM): the warp's first row in the tile
    const int warp_col = threadIdx.x / 32 % (BN / WN) * WN;  // [0, BN)

    const int depth = sum_depth(K, alpha);
    const int blocks = static_cast<int>(ceil_div(depth, BK));
    float sums[WM / 16][WN / 8][4] = {};
    if (blocks > 0) {
        ATile a_tile(A, lda, rows, depth);
        BTile b_tile(B, ldb, cols, depth);
        const StripReader<BM, BK, A_LIES> a_reader(warp_row);
        const StripReader<BN, BK, B_LIES> b_reader(warp_col);

        // `seen` is finite in every thread only if all words of whole blocks are. Warps that read the same words take
        // turns to watch them, step by step: what stands between two mma.sync costs time, even if nothing waits for it.
        float seen = 0.0f;
        const int a_turn = warp_col / WN;  // [0, BN / WN)
        const int b_turn = warp_row / WM;  // [0, BM / WM)

        // Adds the products of blocks first .. end - 1 of k to the sums. In whole blocks it rounds by one instruction,
        // which is right for finite words only, and which can put its result where mma.sync wants it.
        const auto multiply = [&](auto all_whole, int first, int end) {
            const auto fetch = [&](int block, int stage) {
                if (block < end) {
                    float* const a_stage = stages + stage;
                    float* const b_stage = a_stage + ATile::FLOATS;
                    if constexpr (decltype(all_whole)::value) {
                        a_tile.copy_whole(a_stage);
                        b_tile.copy_whole(b_stage);
                    } else {
                        a_tile.copy(a_stage, block);
                        b_tile.copy(b_stage, block);
                    }
                }
                commit_copies();  // after the last block an empty group: there is one for each block
            };
            Strip a[2][WM / 16], b[2][WN / 16];
            const auto load = [&](int into, int stage, int step) {
                a_reader.load(a[into], stages + stage, step);
                b_reader.load(b[into], stages + stage + ATile::FLOATS, step);
            };

#pragma unroll
            for (int ahead = 0; ahead < STAGES - 1; ++ahead) fetch(first + ahead, ahead * STAGE);
            wait_for_copies<STAGES - 2>();
            __syncthreads();
            load(0, 0, 0);
            int full = 0;                     // the stage that is multiplied
            int free = (STAGES - 1) * STAGE;  // the one computed before, which the next copies fill
#pragma unroll 1
            for (int block = first; block < end; ++block) {
#pragma unroll
                for (int step = 0; step < BK / 8; ++step) {
                    if (step == 0) fetch(block + STAGES - 1, free);
                    if (step == BK / 8 - 1) {
                        wait_for_copies<STAGES - 2>();
                        __syncthreads();
                        free = full;
                        // Behind the last block there is none; its own stage is read again, for nothing.
                        if (block + 1 < end) full = full == (STAGES - 1) * STAGE ? 0 : full + STAGE;
                    }
                    // The next step's operands are under way while this one's are multiplied.
                    load((step + 1) % 2, full, (step + 1) % (BK / 8));
                    if constexpr (decltype(all_whole)::value) {
                        if (a_turn == step % (BN / WN)) watch(seen, a[step % 2]);
                        if (b_turn == step % (BM / WM)) watch(seen, b[step % 2]);
                        round_finite(a[step % 2]);
                        round_finite(b[step % 2]);
                    } else {
                        round_to_tf32(a[step % 2]);
                        round_to_tf32(b[step % 2]);
                    }
#pragma unroll
                    for (int pair = 0; pair < WM / 16 * (WN / 16); ++pair) {
                        const int i = pair / (WN / 16), j = pair % (WN / 16);  // a strip of A meets all of B's
                        add_product<0>(sums[i][2 * j], a[step % 2][i], b[step % 2][j]);
                        add_product<1>(sums[i][2 * j + 1], a[step % 2][i], b[step % 2][j]);
                    }
                }
            }
        };

        // A path for edges in the loop costs a fifth of the rate, taken or not, so whole blocks have a loop of their
        // own. The other loop begins where it ends: with the last block of k, or with all where rows are not aligned.
        int done = min(a_tile.whole_blocks(), b_tile.whole_blocks());
        if (done > 0) multiply(Whole<true>(), 0, done);
        // After a NaN or an infinity all is computed again, by the loop that rounds any word. The barrier also protects
        // the stages, which are still being read.
        if (__syncthreads_or(!(fabsf(seen) < __int_as_float(0x7f800000)))) {
            done = 0;
            a_tile.rewind();
            b_tile.rewind();
#pragma unroll
            for (int i = 0; i < WM / 16 * (WN / 8) * 4; ++i) sums[i / 4 / (WN / 8)][i / 4 % (WN / 8)][i % 4] = 0.0f;
        }
        if (done < blocks) multiply(Whole<false>(), done, blocks);
    }

    store_dealt(C, ldc, tile, row, col, rows, cols, warp_row, warp_col, alpha, sums, beta);
}
