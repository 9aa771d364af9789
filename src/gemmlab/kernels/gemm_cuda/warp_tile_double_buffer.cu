/* gemmlab
summary = "warp tiles with two buffers"
idea = "A second buffer saves every other barrier: no gain on an H200, where choosing the buffer costs more."
source = "Chinese SGEMM profiling notes: their kernel 5, the one that met cuBLAS"
op = "gemm"
after = "warp_tile"
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
    "8 * BK * (BM + 4 + BN + 4) <= 49152",
]
expect = [
    # Half of warp_tile's barriers, none of double_buffer's conflicts.
    { shape = "128x256x64", that = "WM * WN * barriers == M * N * ceil_div(K, BK)" },
    { shape = "128x256x64", that = "shared_load_excess == 0 and shared_store_excess == 0" },
    { shape = "128x256x64", config = { BK = 8, WN = 32 }, that = "shared_load_excess + shared_store_excess == 0" },
    { shape = "128x256x64", that = "executed_LDS_128 == 6 * M * N * K // (32 * 128)" },
    { shape = "128x256x64", that = "executed_LDS_128 == shared_load_requests" },
]

[params]
BM = 128
BN = 128
BK = 16
WM = 64
WN = 64
WNITER = 2  # subtiles beside each other; WMITER, how many lie below each other, follows from it
TM = 8
TN = 4
ORDER = 0   # of a step's multiply-adds: 0 a thread's pieces one after the other, 1 rows of all pieces, back and forth

[tune]
BM = [64, 128]
BN = [64, 128]
BK = [8, 16]
WN = [32, 64]
WNITER = [2, 4]
ORDER = [0, 1]
*/

#include "pieces.cuh"
#include "quarters.cuh"
#include "residency.cuh"
#include "specialize.cuh"
#include "tile.cuh"

// The tiles and pieces are warp_tile's, the order of events is double_buffer's. The next tiles are loaded from global
// memory while these are multiplied, and are stored into the other buffer before the last step. One barrier follows.
// The last step, whose words are in registers already, fills the wait for the first words behind the barrier.
template <
    int BM, int BN, int BK, int WM, int WN, int WNITER, int TM, int TN, int ORDER, bool TRANS_A, bool TRANS_B>
__global__ void __launch_bounds__(32 * (BM / WM) * (BN / WN), resident_blocks(BM, BN, BK, 32 * (BM / WM) * (BN / WN)))
warp_tile_double_buffer(
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
    __shared__ __align__(16) float shared[2 * STAGE];  // two buffers, each a tile of A and one of B

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
        float *now = shared, *next = shared + STAGE;  // the buffer that is computed with, and the other
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
