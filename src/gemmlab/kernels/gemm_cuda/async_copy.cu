/* gemmlab
summary = "cp.async through several stages of shared memory, 16 x 8 results a thread"
idea = "Tiles in flight take no registers, so several are copied at a time and a thread can own twice as many results."
source = "Chinese GPU GEMM worklog: its gemm_cp_sync; turning A by copies of 4 bytes is known from public SGEMM kernels"
op = "gemm"
after = "conflict_free"
arch = "sm_80"
transposes = ["nn", "nt", "tn", "tt"]
grid = "ceil_div(M, BM) * ceil_div(N, BN)"
threads = "(BM // TM) * (BN // TN)"
smem_bytes = "4 * STAGES * BK * (BM + BN + 8)"
require = [
    "min(BM, BN, BK, TM, TN) >= 4 and TM % 4 == 0 and TN % 4 == 0 and BK % 8 == 0 and 0 <= LANE_MAP <= 1",
    "BM % 32 == 0 and BM & BM - 1 == 0 and BN % 32 == 0 and BN & BN - 1 == 0",
    "BM % (TM * (4 if TM > TN else 8)) == 0 and BN % (TN * (8 if TM > TN else 4)) == 0",  # warps of 4 x 8 or 8 x 4
    "BM * BN <= 32768 and TM * TN <= 128",                                                # registers
    "min(BM, BN) % ((BM // TM) * (BN // TN) // 2) == 0",                                  # float4 a thread
    "2 <= STAGES <= 4 and 0 <= TURN_ASYNC <= 1 and 4 * STAGES * BK * (BM + BN + 8) <= 101376",
]
expect = [
    # Nothing of A or B passes through a register on its way in: B comes 16 bytes a lane, A turned by 4.
    { shape = "128x256x64", that = "global_load_requests == 0 and shared_store_requests == 0" },
    { shape = "128x256x64", that = "128 * async_copy_requests == 4 * M * K + K * N" },
    # 32 bytes of each row of A and whole rows of B: no sector is asked for in vain, and no bank twice.
    { shape = "128x256x64", that = "8 * async_copy_sectors == M * K + K * N and async_copy_excess == 0" },
    { shape = "128x256x64", that = "shared_load_excess == 0 and shared_load_wavefronts == 2 * shared_load_requests" },
    { shape = "128x256x64", config = { STAGES = 2 }, that = "async_copy_excess == 0 and barriers == 8 * K // BK" },
    { shape = "128x256x64", config = { STAGES = 4 }, that = "async_copy_excess == 0 and barriers == 8 * K // BK" },
    # Turned through registers: float4 from global memory, four words to shared, no bank twice either.
    { shape = "128x256x64", config = { TURN_ASYNC = 0 }, that = "128 * async_copy_requests == K * N" },
    { shape = "128x256x64", config = { TURN_ASYNC = 0 }, that = "128 * global_load_requests == M * K" },
    { shape = "128x256x64", config = { TURN_ASYNC = 0 }, that = "0 == shared_store_excess < shared_store_requests" },
]

[params]
BM = 128
BN = 256
BK = 8
TM = 16
TN = 8
STAGES = 3
TURN_ASYNC = 1  # what must be turned comes 1 by cp.async of single floats, 0 through registers as float4
LANE_MAP = 1    # 1 z-order, 0 a scan

[tune]
BM = [128, 256]
BN = [128, 256]
TM = [8, 16]
STAGES = [2, 3, 4]
TURN_ASYNC = [0, 1]

[search]
BM = [32, 64, 128, 256]
BN = [32, 64, 128, 256]
BK = [8, 16, 32]
TM = [4, 8, 16]
TN = [4, 8, 16]
LANE_MAP = [0, 1]
*/

#include "async_tile.cuh"
#include "lane_map.cuh"
#include "pieces.cuh"
#include "quarters.cuh"
#include "residency.cuh"
#include "tile.cuh"
#include "unaligned.cuh"

//   through registers               cp.async
//
//   global --LDG--> register        global --LDGSTS--> shared       the load returns when it is issued; a thread waits
//                     | STS                                         for its group of copies just before the barrier
//                     v                                             that shows them to the others
//                   shared
//
// cp.async copies 4, 8 or 16 bytes as they are. What lies k-major in global memory (B, and A where it is stored
// transposed) comes 16 bytes at a time. The other operand must be turned, and there are two ways:
//
//   TURN_ASYNC = 1: single floats, each to its own place. Four times the instructions, no registers
//   TURN_ASYNC = 0: float4 through registers, four STS: cp.async for one operand alone, as in the source
//
// Both write rows that are 4 words longer than the tile, and so meet no bank twice (pieces.cuh). Operands that are not
// aligned to 16 bytes take single floats on both sides (unaligned.cuh).
//
//   k-block t   reads the buffer t % STAGES, and starts k-block t + STAGES - 1 into the one that t - 1 has left free
//
//   STAGES 3         t = 0        t = 1        t = 2        t = 3
//   buffer 0       [ multiply ]  [ 3 is on its way .......  multiply ]
//   buffer 1         1 on its way[ multiply ]  [ 4 is on its way .......
//   buffer 2         2 is on its way ........  [ multiply ]
//                             |            |            |
//                             one barrier a k-block: t + 1 is there, and nobody reads t any more
template <
    int BM, int BN, int BK, int TM, int TN, int STAGES, int TURN_ASYNC, int LANE_MAP, bool TRANS_A, bool TRANS_B>
__global__ void __launch_bounds__((BM / TM) * (BN / TN), resident_blocks(BM, BN, BK, (BM / TM) * (BN / TN)))
async_copy(
    int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc)
{
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
