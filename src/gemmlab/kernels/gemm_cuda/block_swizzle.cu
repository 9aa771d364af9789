/* gemmlab
summary = "blocks walk the grid in strips, up and down, on top of async_copy"
idea = "Blocks that run together lie in a compact patch of C and read fewer different tiles: no gain on an H200."
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

#include "async_tile.cuh"
#include "lane_map.cuh"
#include "pieces.cuh"
#include "quarters.cuh"
#include "residency.cuh"
#include "tile.cuh"
#include "unaligned.cuh"

//   C in tiles, the 12 blocks that run together              tiles of A and B that they read
//
//   row by row     # # # # # # # # # # # #                   1 + 12
//                  . . . . . . . . . . . .
//
//   strips of 4    # # # # . . . . . . . .
//                  # # # # . . . . . . . .                   3 + 4
//                  # # # # . . . . . . . .
//
// All of them move along k together, so at any time L2 must hold only the tiles of a few k-blocks. This saves traffic
// between L2 and memory, which matters where one wave's rows of A and columns of B together exceed L2. Blocks
// start about in the order of their numbers:
//
//   ORDER 0: row by row   1: strips of GROUP = 2    2: strips up and down
//
//    0  1  2  3  4         0  1 |  6  7 | 12         0  1 | 10 11 | 12       every second strip is walked
//    5  6  7  8  9         2  3 |  8  9 | 13         2  3 |  8  9 | 13       upwards: the rows of A that end
//   10 11 12 13 14         4  5 | 10 11 | 14         4  5 |  6  7 | 14       one begin the next
//
// The blocks' own work is that of async_copy.
template <
    int BM, int BN, int BK, int TM, int TN, int STAGES, int ORDER, int GROUP, bool TRANS_A, bool TRANS_B>
__global__ void __launch_bounds__((BM / TM) * (BN / TN), resident_blocks(BM, BN, BK, (BM / TM) * (BN / TN)))
block_swizzle(
    int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc)
{
    constexpr int TURN_ASYNC = 1, LANE_MAP = Z_ORDER;  // async_copy's defaults
    constexpr int THREADS = (BM / TM) * (BN / TN);
    constexpr int LANES_M = TM > TN ? 4 : 8, LANES_N = 32 / LANES_M;  // lanes of a warp below and beside each other
    constexpr int WARPS_N = BN / (LANES_N * TN);                      // warps beside each other
    constexpr int APART_M = 4 * LANES_M, APART_N = 4 * LANES_N;       // rows and columns between a thread's quarters
    // An operand that is not turned comes by cp.async in any case.
    constexpr bool A_ASYNC = TRANS_A || TURN_ASYNC, B_ASYNC = !TRANS_B || TURN_ASYNC;
    using APieces = Pieces<BM, BK, THREADS, !TRANS_A, !TRANS_A && TURN_ASYNC ? 1 : 4>;
    using BPieces = Pieces<BN, BK, THREADS, TRANS_B, TRANS_B && TURN_ASYNC ? 1 : 4>;
    constexpr int A_LD = APieces::LD, B_LD = BPieces::LD;
    constexpr int STAGE = APieces::WORDS + BPieces::WORDS;
    extern __shared__ __align__(16) float shared[];  // STAGES buffers, each a tile of A and one of B

    Tile tile;
    if (ORDER == 0) {
        tile = tile_of_block<BM, BN>(N);
    } else {
        const unsigned down = ceil_div(M, BM), across = ceil_div(N, BN);  // tiles of C
        const unsigned per_strip = down * min(across, static_cast<unsigned>(GROUP));  // no more than there are blocks
        const unsigned strip = blockIdx.x / per_strip, in_strip = blockIdx.x % per_strip;
        const unsigned width = min(across - strip * GROUP, static_cast<unsigned>(GROUP));  // the last may be narrower
        const unsigned step = in_strip / width;                                            // [0, down)
        const unsigned row = ORDER == 2 && strip % 2 ? down - 1 - step : step;
        tile = {static_cast<int>(row) * BM, static_cast<int>(strip * GROUP + in_strip % width) * BN};
    }
    // Nothing is done here. But ptxas no longer sees how the place was found, and gives the main loop the schedule of
    // async_copy; knowing it, it found one that is 5 % slower.
    asm volatile("" : "+r"(tile.row), "+r"(tile.col));
    const int rows = M - tile.row, cols = N - tile.col;  // of C from this tile on
    LanePlace at = lane_place<LANE_MAP, LANES_M, LANES_N>();  // this thread's first quarter in the block's tile:
    at.row += threadIdx.x / 32 / WARPS_N * LANES_M * TM;      // [0, BM)
    at.col += threadIdx.x / 32 % WARPS_N * LANES_N * TN;      // [0, BN)
    A += TRANS_A ? tile.row : tile.row * static_cast<Offset>(lda);
    B += TRANS_B ? tile.col * static_cast<Offset>(ldb) : tile.col;

    float sums[TM][TN] = {};
    const int depth = sum_depth(K, alpha);
    const unsigned blocks = ceil_div(depth, BK);
    const bool fours = APieces::in_fours(A, lda, rows, depth) && BPieces::in_fours(B, ldb, cols, depth);
    if (!fours) {
        multiply_unaligned<BM, BN, BK, STAGES, THREADS, APART_M, APART_N, TRANS_A, TRANS_B>(
            sums, shared, at, depth, A, lda, rows, B, ldb, cols);
    } else if (blocks > 0) {
        const int missing = (BK - depth % BK) % BK;  // terms that the first k-block lacks
        APieces a(A, lda, rows, missing);
        BPieces b(B, ldb, cols, missing);
        float4 a_next[A_ASYNC ? 1 : APieces::COUNT], b_next[B_ASYNC ? 1 : BPieces::COUNT];  // through registers
        const auto fetch_a = [&](bool more, float* stage) {
#pragma unroll
            for (int i = 0; i < APieces::COUNT; ++i)
                if constexpr (A_ASYNC) copy_async_if<APieces::WIDTH>(more, &stage[a.word(i)], a.piece(i));
                else load_four_if(more, a_next[i], a.piece(i));
        };
        const auto fetch_b = [&](bool more, float* stage) {
#pragma unroll
            for (int i = 0; i < BPieces::COUNT; ++i)
                if constexpr (B_ASYNC)
                    copy_async_if<BPieces::WIDTH>(more, &stage[APieces::WORDS + b.word(i)], b.piece(i));
                else load_four_if(more, b_next[i], b.piece(i));
        };
        const auto put_a = [&](float* stage) {
#pragma unroll
            for (int i = 0; i < APieces::COUNT; ++i)
                if constexpr (!A_ASYNC) put_four<!TRANS_A, A_LD>(&stage[a.word(i)], a_next[i]);
        };
        const auto put_b = [&](float* stage) {
#pragma unroll
            for (int i = 0; i < BPieces::COUNT; ++i)
                if constexpr (!B_ASYNC)
                    put_four<TRANS_B, B_LD>(&stage[APieces::WORDS + b.word(i)], b_next[i]);
        };
        float a_frag[2][TM], b_frag[2][TN];  // of step k in [k % 2]
        const auto read = [&](const float* stage, int k) {
            load_parts<APART_M>(a_frag[k % 2], &stage[k * A_LD + at.row]);
            load_parts<APART_N>(b_frag[k % 2], &stage[APieces::WORDS + k * B_LD + at.col]);
        };
        // Back and forth: every second line of the products backwards, so that each shares a word with the one before.
        const auto multiply = [&](int k) {
            constexpr bool BY_ROWS = TM > TN;  // lines go along the shorter side; of a square they are columns
            constexpr int LINES = BY_ROWS ? TM : TN, LENGTH = BY_ROWS ? TN : TM;
#pragma unroll
            for (int line = 0; line < LINES; ++line)
#pragma unroll
                for (int step = 0; step < LENGTH; ++step) {
                    const int along = line % 2 ? LENGTH - 1 - step : step;
                    const int i = BY_ROWS ? line : along, j = BY_ROWS ? along : line;
                    sums[i][j] += a_frag[k % 2][i] * b_frag[k % 2][j];
                }
        };

        // The first STAGES - 1 blocks of k on their way, the ragged one before all others.
#pragma unroll
        for (int t = 0; t < STAGES - 1; ++t) {
            float* const stage = shared + t * STAGE;
            if (t < blocks) {
#pragma unroll
                for (int i = 0; i < APieces::COUNT; ++i) {
                    const bool exists = a.exists(i, t == 0 ? missing : 0);
                    if constexpr (A_ASYNC) copy_async<APieces::WIDTH>(stage + a.word(i), a.piece(i), exists);
                    else a_next[i] = exists ? *reinterpret_cast<const float4*>(a.piece(i)) : float4{};
                }
#pragma unroll
                for (int i = 0; i < BPieces::COUNT; ++i) {
                    const bool exists = b.exists(i, t == 0 ? missing : 0);
                    if constexpr (B_ASYNC)
                        copy_async<BPieces::WIDTH>(stage + APieces::WORDS + b.word(i), b.piece(i), exists);
                    else b_next[i] = exists ? *reinterpret_cast<const float4*>(b.piece(i)) : float4{};
                }
                a.advance();
                b.advance();
                put_a(stage);
                put_b(stage);
            }
            commit_copies();  // a group a block of k, an empty one where there is none
        }
        wait_for_copies<STAGES - 2>();
        __syncthreads();

        float* now = shared;                          // the buffer that is computed with
        float* free = shared + (STAGES - 1) * STAGE;  // the one of the block before
        read(now, 0);
        for (unsigned left = blocks;; --left) {
            const bool more = left > STAGES - 1;
            // Through registers A is put away before B is fetched, so that they hold only one of them.
            constexpr int B_START = A_ASYNC ? 0 : BK / 2;
#pragma unroll
            for (int k = 0; k < BK - 1; ++k) {
                read(now, k + 1);
                if (k == 0) fetch_a(more, free);
                if (k == BK / 2 - 1) {
                    put_a(free);
                    a.advance();
                }
                if (k == B_START) {
                    fetch_b(more, free);
                    commit_copies();
                }
                if (k == BK - 2) b.advance();
                multiply(k);
            }
            if (left == 1) break;
            put_b(free);
            wait_for_copies<STAGES - 2>();  // the next block of k has come, of this thread's pieces
            __syncthreads();                // and of all
            float* const next = STAGES == 2 ? free : now == shared + (STAGES - 1) * STAGE ? shared : now + STAGE;
            free = now;
            now = next;
            read(now, 0);
            multiply(BK - 1);  // the last step's products fill the wait for these words
        }
        multiply(BK - 1);
    }

    C += (tile.row + at.row) * static_cast<Offset>(ldc) + tile.col + at.col;
    store_parts<APART_M, APART_N>(
        C, ldc, rows - at.row, cols - at.col, rows_are_aligned(C, ldc), alpha, sums, beta);
}
