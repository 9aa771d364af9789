/* gemmlab
summary = "async_copy without its other ways: the loop whose machine code is ordered by hand"
idea = "One straight loop without a peeled last step; its FFMAs are to read one register from each bank."
source = "own"
op = "gemm"
arch = "sm_80"
transposes = ["nn"]
align = 16
grid = "ceil_div(M, BM) * ceil_div(N, BN)"
threads = 256
smem_bytes = "4 * STAGES * BK * (BM + BN + 8)"
require = ["M % 128 == 0 and N % 256 == 0 and K % 8 == 0 and K >= 32 and alpha != 0"]

[params]
BM = 128
BN = 256
BK = 8
TM = 16
TN = 8
STAGES = 3
*/
#include "async_tile.cuh"
#include "lane_map.cuh"
#include "pieces.cuh"
#include "quarters.cuh"
#include "tile.cuh"

#define ROOM4 asm volatile("pmevent 0;\npmevent 1;\npmevent 2;\npmevent 3;" ::: "memory");
#define ROOM16 ROOM4 ROOM4 ROOM4 ROOM4

template <int BM, int BN, int BK, int TM, int TN, int STAGES, bool TRANS_A, bool TRANS_B>
__global__ void __launch_bounds__((BM / TM) * (BN / TN), 1) loop8(
    int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc)
{
    constexpr int THREADS = (BM / TM) * (BN / TN);
    constexpr int LANES_M = 4, LANES_N = 8;
    constexpr int WARPS_N = BN / (LANES_N * TN);
    constexpr int APART_M = 4 * LANES_M, APART_N = 4 * LANES_N;
    using APieces = Pieces<BM, BK, THREADS, true, 1>;
    using BPieces = Pieces<BN, BK, THREADS, false, 4>;
    constexpr int A_LD = APieces::LD, B_LD = BPieces::LD;
    constexpr int STAGE = APieces::WORDS + BPieces::WORDS;
    extern __shared__ __align__(16) float shared[];

    const Tile tile = tile_of_block<BM, BN>(N);
    const int rows = M - tile.row, cols = N - tile.col;
    LanePlace at = lane_place<Z_ORDER, LANES_M, LANES_N>();
    at.row += threadIdx.x / 32 / WARPS_N * LANES_M * TM;
    at.col += threadIdx.x / 32 % WARPS_N * LANES_N * TN;
    A += tile.row * static_cast<Offset>(lda);
    B += tile.col;

    float sums[TM][TN] = {};
    const unsigned blocks = K / BK;
    APieces a(A, lda, rows, 0);
    BPieces b(B, ldb, cols, 0);
    const auto fetch = [&](bool more, float* stage) {
#pragma unroll
        for (int i = 0; i < APieces::COUNT; ++i) copy_async_if<1>(more, &stage[a.word(i)], a.piece(i));
#pragma unroll
        for (int i = 0; i < BPieces::COUNT; ++i) copy_async_if<4>(more, &stage[APieces::WORDS + b.word(i)], b.piece(i));
    };
    float a_frag[2][TM], b_frag[2][TN];
    const auto read = [&](const float* stage, int k) {
        load_parts<APART_M>(a_frag[k % 2], &stage[k * A_LD + at.row]);
        load_parts<APART_N>(b_frag[k % 2], &stage[APieces::WORDS + k * B_LD + at.col]);
    };
    const auto multiply = [&](int k) {
#pragma unroll
        for (int i = 0; i < TM; ++i)
#pragma unroll
            for (int step = 0; step < TN; ++step) {
                const int j = i % 2 ? TN - 1 - step : step;
                sums[i][j] += a_frag[k % 2][i] * b_frag[k % 2][j];
            }
    };
#pragma unroll
    for (int t = 0; t < STAGES - 1; ++t) {
        fetch(true, shared + t * STAGE);
        a.advance();
        b.advance();
        commit_copies();
    }
    wait_for_copies<STAGES - 2>();
    __syncthreads();
    float* now = shared;
    float* free = shared + (STAGES - 1) * STAGE;
    ROOM16
    read(now, 0);
#pragma unroll 1
    for (unsigned left = blocks; left; --left) {
        const bool more = left > STAGES - 1;
#pragma unroll
        for (int k = 0; k < BK - 1; ++k) {
            read(now, k + 1);
            if (k == 0) {
                fetch(more, free);
                commit_copies();
            }
            if (k == BK - 2) {
                a.advance();
                b.advance();
            }
            multiply(k);
        }
        wait_for_copies<STAGES - 2>();
        __syncthreads();
        float* const next = now == shared + (STAGES - 1) * STAGE ? shared : now + STAGE;
        free = now;
        now = next;
        read(now, 0);
        multiply(BK - 1);
    }
    ROOM16 ROOM16 ROOM16 ROOM16 ROOM16 ROOM16 ROOM16 ROOM16 ROOM16 ROOM16 ROOM16 ROOM16 ROOM16
    C += (tile.row + at.row) * static_cast<Offset>(ldc) + tile.col + at.col;
    store_parts<APART_M, APART_N>(C, ldc, rows - at.row, cols - at.col, true, alpha, sums, beta);
}
