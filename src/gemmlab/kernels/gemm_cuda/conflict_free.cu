/* gemmlab
summary = "8 x 8 results a thread in quarters of 4 x 4, lanes in z-order"
idea = "Lanes in z-order read shared memory in the fewest passes: no gain on an H200; A and B are loaded in turn."
source = "Chinese GPU GEMM worklog: its gemm_bank_free; Chinese SGEMM notes on maxas: the lane map, which they scan"
op = "gemm"
after = "unguarded"
arch = "sm_80"
transposes = ["nn", "nt", "tn", "tt"]
grid = "ceil_div(M, BM) * ceil_div(N, BN)"
threads = "(BM // TM) * (BN // TN)"
smem_bytes = "8 * BK * (BM + BN + 8)"
require = [
    "min(BM, BN, BK, TM, TN) >= 4 and TM % 4 == 0 and TN % 4 == 0 and BK % 8 == 0 and 0 <= LANE_MAP <= 1",
    "BM % 32 == 0 and BM & BM - 1 == 0 and BN % 32 == 0 and BN & BN - 1 == 0",
    "BM % (TM * (4 if TM > TN else 8)) == 0 and BN % (TN * (8 if TM > TN else 4)) == 0",  # warps of 4 x 8 or 8 x 4
    "BM * BN <= 32768 and TM * TN <= 128",                                                # registers
    "min(BM, BN) % ((BM // TM) * (BN // TN) // 2) == 0",                                  # float4 a thread
    "8 * BK * (BM + BN + 8) <= 65536",
]
expect = [
    "shared_load_excess == 0 and shared_store_excess == 0",
    # Two wavefronts are the floor of an LDS.128: 16 lanes each. In a scan the loads of Bs take four, those of As two.
    "executed_LDS == executed_LDS_128 and shared_load_wavefronts == 2 * executed_LDS_128",
    { config = { LANE_MAP = 0 }, that = "shared_load_wavefronts == 3 * executed_LDS_128" },
    { config = { TM = 16 }, that = "shared_load_wavefronts == 2 * executed_LDS_128" },
    { shape = "128x128x136", that = "barriers == 8 * ceil_div(K, BK)" },
]

[params]
BM = 128
BN = 128
BK = 8
TM = 8
TN = 8
LANE_MAP = 1  # 1 z-order, 0 a scan: lanes row after row

[tune]
BM = [64, 128, 256]
BN = [64, 128, 256]
TM = [8, 16]
LANE_MAP = [0, 1]
*/

#include "lane_map.cuh"
#include "pieces.cuh"
#include "quarters.cuh"
#include "residency.cuh"
#include "tile.cuh"
#include "unaligned.cuh"

//   the 128 x 128 tile and its 8 warps, 64 x 32 each        one warp: lane 0's four quarters, and lane 0 alone
//
//           BN                                                    0   4       16  20
//      +----+----+----+----+                                   0  [##]........[##]........
//      | w0 | w1 | w2 | w3 |                                   4  .           .
//   BM +----+----+----+----+                                   :  .           .
//      | w4 | w5 | w6 | w7 |                                  32  [##]........[##]........
//      +----+----+----+----+                                  36  .           .
//
// One LDS.128 brings a column piece of 4, two bring the 8 of a step k; the same of Bs. Lanes that share a row of
// quarters read the same words of As, lanes above each other the same words of Bs. Which lanes these are is the lane
// map, drawn in lane_map.cuh. As and Bs are k-major in two buffers, their rows padded by 4 words so that stores are
// free of conflicts too where a tile is turned (pieces.cuh).
//
// Fetching and putting away are spread over the steps, so that registers hold a tile of one operand only:
//
//   step k       0         1        2       BK/2 - 1   BK/2        ...          BK - 1
//   A            fetch ................... put                                  |
//   B                                                 fetch ................... put, barrier
//   fragments    read 1    read 2   read 3  ...                                 read 0 of the next k-block
template <int BM, int BN, int BK, int TM, int TN, int LANE_MAP, bool TRANS_A, bool TRANS_B>
__global__ void __launch_bounds__((BM / TM) * (BN / TN), resident_blocks(BM, BN, BK, (BM / TM) * (BN / TN)))
conflict_free(
    int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc)
{
    constexpr int THREADS = (BM / TM) * (BN / TN);
    constexpr int LANES_M = TM > TN ? 4 : 8, LANES_N = 32 / LANES_M;  // lanes of a warp below and beside each other
    constexpr int WARPS_N = BN / (LANES_N * TN);                      // warps beside each other
    constexpr int APART_M = 4 * LANES_M, APART_N = 4 * LANES_N;       // rows and columns between a thread's quarters
    using APieces = Pieces<BM, BK, THREADS, !TRANS_A>;
    using BPieces = Pieces<BN, BK, THREADS, TRANS_B>;
    constexpr int A_LD = APieces::LD, B_LD = BPieces::LD;
    constexpr int STAGE = APieces::WORDS + BPieces::WORDS;
    extern __shared__ __align__(16) float shared[];  // two buffers, each a tile of A and one of B

    const Tile tile = tile_of_block<BM, BN>(N);
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
        multiply_unaligned<BM, BN, BK, 2, THREADS, APART_M, APART_N, TRANS_A, TRANS_B>(
            sums, shared, at, depth, A, lda, rows, B, ldb, cols);
    } else if (blocks > 0) {
        const int missing = (BK - depth % BK) % BK;  // terms that the first k-block lacks
        APieces a(A, lda, rows, missing);
        BPieces b(B, ldb, cols, missing);
        float4 a_next[APieces::COUNT], b_next[BPieces::COUNT];  // of the next tiles, on their way
        const auto fetch_a = [&](bool more) {
#pragma unroll
            for (int i = 0; i < APieces::COUNT; ++i)
                load_four_if(more, a_next[i], a.piece(i));
        };
        const auto fetch_b = [&](bool more) {
#pragma unroll
            for (int i = 0; i < BPieces::COUNT; ++i)
                load_four_if(more, b_next[i], b.piece(i));
        };
        const auto put_a = [&](float* stage) {
#pragma unroll
            for (int i = 0; i < APieces::COUNT; ++i)
                put_four<!TRANS_A, A_LD>(&stage[a.word(i)], a_next[i]);
        };
        const auto put_b = [&](float* stage) {
#pragma unroll
            for (int i = 0; i < BPieces::COUNT; ++i)
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

        float *now = shared, *next = shared + STAGE;  // the buffer that is computed with, and the other
#pragma unroll
        for (int i = 0; i < APieces::COUNT; ++i)
            a_next[i] = a.exists(i, missing) ? *reinterpret_cast<const float4*>(a.piece(i)) : float4{};
#pragma unroll
        for (int i = 0; i < BPieces::COUNT; ++i)
            b_next[i] = b.exists(i, missing) ? *reinterpret_cast<const float4*>(b.piece(i)) : float4{};
        a.advance();
        b.advance();
        put_a(now);
        put_b(now);
        __syncthreads();
        read(now, 0);
        for (unsigned left = blocks;; --left) {
#pragma unroll
            for (int k = 0; k < BK - 1; ++k) {
                read(now, k + 1);
                if (k == 0) fetch_a(left > 1);
                if (k == BK / 2 - 1) {
                    put_a(next);
                    a.advance();
                }
                if (k == BK / 2) fetch_b(left > 1);
                if (k == BK - 2) b.advance();
                multiply(k);
            }
            if (left == 1) break;
            put_b(next);
            __syncthreads();
            float* const last = now;
            now = next;
            next = last;
            read(now, 0);
            multiply(BK - 1);  // the last step's products fill the wait for these words
        }
        multiply(BK - 1);
    }

    C += (tile.row + at.row) * static_cast<Offset>(ldc) + tile.col + at.col;
    store_parts<APART_M, APART_N>(
        C, ldc, rows - at.row, cols - at.col, rows_are_aligned(C, ldc), alpha, sums, beta);
}
