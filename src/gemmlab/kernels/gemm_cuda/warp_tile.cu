/* gemmlab
summary = "a level between block and thread: a warp owns a part of the tile, a thread small pieces of that part"
idea = "A warp's part is square and its lanes read neighbours: fewer words from shared memory, and no bank conflicts."
source = "Chinese SGEMM notes: version 6; Korean worklog on CUDA matmul: its kernel 6; Chinese SGEMM profiling notes: 3"
op = "gemm"
after = "double_buffer"
arch = "sm_75"
transposes = ["nn", "nt", "tn", "tt"]
grid = "ceil_div(M, BM) * ceil_div(N, BN)"
threads = "32 * (BM // WM) * (BN // WN)"
require = [
    "min(BM, BN, BK, WM, WN, WNITER, TM, TN) >= 1 and BM % WM == 0 and BN % WN == 0",
    "BM % 4 == 0 and BN % 4 == 0 and BK % 8 == 0 and TM % 4 == 0 and TN % 4 == 0",
    "WM * WN % (32 * TM * TN * WNITER) == 0 and WN % (TN * WNITER) == 0 and 32 % (WN // (TN * WNITER)) == 0",
    "32 * (BM // WM) * (BN // WN) <= 1024",
    "ORDER == 0 or ORDER == 1 and WNITER * TN == 8",  # rows of 8 products
    "BM * BK % (128 * (BM // WM) * (BN // WN)) == 0",
    "BN * BK % (128 * (BM // WM) * (BN // WN)) == 0",
    "WM * WN <= 2048 or (BM + BN) * BK <= 1024 * (BM // WM) * (BN // WN)",  # registers: 128 sums and 32 words
    "ORDER == 0 or BK == 8 or WM * WN > 2048",
    "1 <= BUFFERS <= 2 and 4 * BUFFERS * BK * (BM + 4 + BN + 4) <= 49152",
]
expect = [
    # Bank conflicts: thread_tile_2d and double_buffer have M * N * K / 256 with the same tile of 128 x 128. Here no two
    # lanes meet in a bank, in loads nor in stores, whatever the warp's part.
    { shape = "128x256x64", that = "shared_load_excess == 0 and shared_store_excess == 0" },
    { shape = "128x256x64", config = { WNITER = 4 }, that = "shared_load_excess == 0 and shared_store_excess == 0" },
    { shape = "128x256x64", config = { BK = 8, WN = 32 }, that = "shared_load_excess == 0" },
    { shape = "128x256x64", config = { BM = 64, BN = 64, BK = 8, WN = 32 }, that = "shared_load_excess == 0" },
    # 16 x 8 sums a thread: 6 loads for 128 products, where 8 x 8 take 4 for 64.
    { shape = "128x256x64", that = "executed_LDS_128 == 6 * M * N * K // (32 * 128)" },
    { shape = "128x256x64", that = "executed_LDS_128 == shared_load_requests" },
    { shape = "128x256x64", that = "WM * WN * barriers == (2 * ceil_div(K, BK) - 1) * M * N" },
    # Lanes beside each other store neighbours: all sectors of C are written once.
    { shape = "128x256x64", that = "32 * global_store_sectors == 4 * M * N" },
]

[params]
BM = 128
BN = 128
BK = 16
WM = 64
WN = 64
WNITER = 2   # subtiles beside each other; WMITER, how many lie below each other, follows from it
TM = 8
TN = 4
ORDER = 0    # of a step's multiply-adds: 0 a thread's pieces one after the other, 1 rows of all pieces, back and forth
BUFFERS = 1  # of each tile in shared memory; the second one is the next rung

[tune]
BM = [64, 128]
BN = [64, 128]
BK = [8, 16]
WN = [32, 64]
WNITER = [2, 4]
ORDER = [0, 1]

[search]
BM = [32, 64, 128, 256]
BN = [32, 64, 128, 256]
BK = [8, 16, 32]
WM = [16, 32, 64, 128]
WN = [16, 32, 64, 128]
WNITER = [1, 2, 4]
TM = [4, 8]
TN = [4, 8]
*/

#include "pieces.cuh"
#include "quarters.cuh"
#include "residency.cuh"
#include "specialize.cuh"
#include "tile.cuh"

//   block tile BM x BN                  warp tile WM x WN                      subtile SUB_M x SUB_N
//        +-------+-------+                  +------+------+                        +---+---+---+---+
//        |warp 0 |warp 1 | WM               |      |      | SUB_M                  | 0 | 1 | 2 | 3 | TM    32 lanes,
//     BM +-------+-------+             WM   +------+------+                  SUB_M +---+---+---+---+       TM x TN sums
//        |warp 2 |warp 3 |                  |      |      |                        | 4 | 5 | 6 | 7 |       each
//        +-------+-------+                  +------+------+                        :   :   :   :   :
//           WN                               SUB_N                                   TN
//          BN / WN warps beside        WMITER x WNITER subtiles,               SUB_N / TN lanes beside
//          each other                  each thread is in all of them           each other
//
// One step k of a warp reads WM + WN neighbouring words, however many warps the block has. Lanes beside each other read
// the same words of A and neighbouring words of B, TN = 4 of them 16 bytes: no two meet in a bank.
template <
    int BM, int BN, int BK, int WM, int WN, int WNITER, int TM, int TN, int ORDER, int BUFFERS,
    bool TRANS_A, bool TRANS_B>
__global__ void __launch_bounds__(32 * (BM / WM) * (BN / WN), resident_blocks(BM, BN, BK, 32 * (BM / WM) * (BN / WN)))
warp_tile(
    int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc)
{
    constexpr int THREADS = 32 * (BM / WM) * (BN / WN);
    constexpr int WMITER = WM * WN / (32 * TM * TN * WNITER);  // subtiles of a warp below each other
    constexpr int SUB_M = WM / WMITER, SUB_N = WN / WNITER;
    constexpr int OWN_M = WMITER * TM, OWN_N = WNITER * TN;  // results of a thread
    static_assert(SUB_M * SUB_N == 32 * TM * TN && SUB_N % TN == 0, "32 lanes must cover a subtile");
    using APieces = Pieces<BM, BK, THREADS, !TRANS_A>;
    using BPieces = Pieces<BN, BK, THREADS, TRANS_B>;
    constexpr int A_LD = APieces::LD, B_LD = BPieces::LD;
    constexpr int STAGE = APieces::WORDS + BPieces::WORDS;
    __shared__ __align__(16) float shared[BUFFERS * STAGE];  // so many buffers, each a tile of A and one of B

    const Tile tile = tile_of_block<BM, BN>(N);
    const int rows = M - tile.row, cols = N - tile.col;  // of C from this tile on
    // First result of the thread's first subtile; the others lie SUB_M rows below and SUB_N columns beside.
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int x = warp % (BN / WN) * WN + lane % (SUB_N / TN) * TN;  // [0, BN)
    const int y = warp / (BN / WN) * WM + lane / (SUB_N / TN) * TM;  // [0, BM)
    const bool a_vectors = rows_are_aligned(A, lda), b_vectors = rows_are_aligned(B, ldb);
    const bool inside = a_vectors && b_vectors && rows >= BM && cols >= BN;  // all tiles, but along k
    APieces a(A + (TRANS_A ? tile.row : tile.row * static_cast<Offset>(lda)), lda);
    BPieces b(B + (TRANS_B ? tile.col * static_cast<Offset>(ldb) : tile.col), ldb);

    float4 a_next[APieces::COUNT], b_next[BPieces::COUNT];  // of the next tiles, on their way
    const auto fetch = [&](int left) {                      // `left` terms exist: more than BK, or none at all
        specialize(inside && left >= BK, [&](auto whole) {
#pragma unroll
            for (int i = 0; i < APieces::COUNT; ++i)
                a_next[i] = load_four(a.piece(i), whole ? 4 : a.existing(i, rows, left), whole || a_vectors);
#pragma unroll
            for (int i = 0; i < BPieces::COUNT; ++i)
                b_next[i] = load_four(b.piece(i), whole ? 4 : b.existing(i, cols, left), whole || b_vectors);
        });
        a.advance();
        b.advance();
    };
    const auto put = [&](float* stage) {
#pragma unroll
        for (int i = 0; i < APieces::COUNT; ++i)
            put_four<!TRANS_A, A_LD>(&stage[a.word(i)], a_next[i]);
#pragma unroll
        for (int i = 0; i < BPieces::COUNT; ++i)
            put_four<TRANS_B, B_LD>(&stage[APieces::WORDS + b.word(i)], b_next[i]);
    };

    float sums[OWN_M][OWN_N] = {};
    float a_frag[2][OWN_M], b_frag[2][OWN_N];  // of step k in [k % 2]
    const auto read = [&](const float* stage, int k) {
        load_parts<SUB_M, TM>(a_frag[k % 2], &stage[k * A_LD + y]);
        load_parts<SUB_N, TN>(b_frag[k % 2], &stage[APieces::WORDS + k * B_LD + x]);
    };
    const auto multiply = [&](int k) {
        const auto add = [&](int i, int j) { sums[i][j] += a_frag[k % 2][i] * b_frag[k % 2][j]; };
        if (ORDER == 0) {
#pragma unroll
            for (int m = 0; m < WMITER; ++m)
#pragma unroll
                for (int n = 0; n < WNITER; ++n)
#pragma unroll
                    for (int i = 0; i < TM; ++i)
#pragma unroll
                        for (int j = 0; j < TN; ++j) add(m * TM + i, n * TN + j);
        } else {
#pragma unroll
            for (int i = 0; i < OWN_M; ++i)
#pragma unroll
                for (int j = 0; j < OWN_N; ++j) add(i, i % 2 ? OWN_N - 1 - j : j);
        }
    };

    int left = sum_depth(K, alpha);
    if (left > 0) {
        float* now = shared;                           // the buffer that is computed with
        float* next = shared + (BUFFERS - 1) * STAGE;  // the one that the next tiles go to
        fetch(left);
        put(now);
        __syncthreads();
        read(now, 0);
        for (;; left -= BK) {
            fetch(left - BK);
#pragma unroll (BK > 8 ? 4 : 8)  // instruction caches hold a loop of 18 KB, not the 37 KB of 16 steps
            for (int k = 0; k < BK - 1; ++k) {
                read(now, k + 1);
                multiply(k);
            }
            if (left <= BK) break;
            if (BUFFERS == 1) __syncthreads();  // before the next tiles overwrite these
            put(next);
            __syncthreads();
            float* const last = now;
            now = next;
            next = last;
            read(now, 0);
            multiply(BK - 1);  // the last step's products fill the wait for these words
        }
        multiply(BK - 1);
    }

    C += (tile.row + y) * static_cast<Offset>(ldc) + tile.col + x;
    store_parts<SUB_M, SUB_N, TM, TN>(C, ldc, rows - y, cols - x, rows_are_aligned(C, ldc), alpha, sums, beta);
}
