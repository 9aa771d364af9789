/* gemmlab
summary = "loop8 by blocks that stay: whole tiles first, then a stretch of the steps of the tiles that are left"
idea = "One straight loop without a peeled last step; its FFMAs are to read one register from each bank."
source = "own"
op = "gemm"
arch = "sm_80"
transposes = ["nn"]
align = 16
grid = "min(BLOCKS, ceil_div(M, BM) * ceil_div(N, BN))"
workspace = "8 * BM * BN * blocks"
tickets = "2 * blocks"
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
BLOCKS = 132
*/
#include "async_tile.cuh"
#include "lane_map.cuh"
#include "parts.cuh"
#include "pieces.cuh"
#include "quarters.cuh"
#include "tile.cuh"

#define ROOM4 asm volatile("pmevent 0;\npmevent 1;\npmevent 2;\npmevent 3;" ::: "memory");
#define ROOM16 ROOM4 ROOM4 ROOM4 ROOM4

template <int BM, int BN, int BK, int TM, int TN, int STAGES, bool TRANS_A, bool TRANS_B>
__global__ void __launch_bounds__((BM / TM) * (BN / TN), 1) stream8(
    int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc,
    void* workspace, unsigned* tickets)
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

    LanePlace at = lane_place<Z_ORDER, LANES_M, LANES_N>();
    at.row += threadIdx.x / 32 / WARPS_N * LANES_M * TM;
    at.col += threadIdx.x / 32 % WARPS_N * LANES_N * TN;
    const unsigned blocks_of_k = K / BK, across = N / BN, tiles = M / BM * across;
    const unsigned whole = tiles % gridDim.x ? max(tiles / gridDim.x, 1u) - 1 : tiles / gridDim.x;  // of this block
    const unsigned first_shared = whole * gridDim.x;
    const unsigned steps = (tiles - first_shared) * blocks_of_k, each = steps / gridDim.x, more_steps = steps % gridDim.x;
    const auto first_step = [&](unsigned block) { return block * each + min(block, more_steps); };
    const auto block_of = [&](unsigned step) {
        const unsigned longer = more_steps * (each + 1);
        return step < longer ? step / (each + 1) : more_steps + (step - longer) / each;
    };
    unsigned step = first_step(blockIdx.x);
    const unsigned end = first_step(blockIdx.x + 1);
#pragma unroll 1
    for (unsigned turn = 0;; ++turn) {
    unsigned number, first = 0, blocks = blocks_of_k;
    if (turn < whole) {
        number = turn * gridDim.x + blockIdx.x;
    } else {
        if (step >= end) return;
        number = first_shared + step / blocks_of_k;
        first = step % blocks_of_k;
        blocks = min(end - step, blocks_of_k - first);
    }
    const int row = number / across * BM, col = number % across * BN;
    float sums[TM][TN] = {};
    APieces a(A + row * static_cast<Offset>(lda) + first * BK, lda, BM, 0);
    BPieces b(B + first * BK * static_cast<Offset>(ldb) + col, ldb, BN, 0);
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
        fetch(t < blocks, shared + t * STAGE);
        a.advance();
        b.advance();
        commit_copies();
    }
    wait_for_copies<STAGES - 2>();
    __syncthreads();
    float* now = shared;
    float* free = shared + (STAGES - 1) * STAGE;
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
    unsigned from = blockIdx.x, to = blockIdx.x;
    if (turn >= whole && blocks < blocks_of_k) {
        from = block_of(step - first);
        to = block_of(step - first + blocks_of_k - 1);
    }
    float* const c = C + (row + at.row) * static_cast<Offset>(ldc) + col + at.col;
    const float(&flat)[TM * TN] = reinterpret_cast<const float(&)[TM * TN]>(sums);
    float* const left = static_cast<float*>(workspace) + from * Offset(2 * BM * BN);
    add_parts<4, THREADS, 1>(flat, blockIdx.x - from, to - from + 1, tickets + 2 * from, left, [&](int i, float4 sum) {
        const int r = i / 2;
        float4* const p = reinterpret_cast<float4*>(c + (r / 4 * APART_M + r % 4) * static_cast<Offset>(ldc) + i % 2 * APART_N);
        float4 result = make_float4(alpha * sum.x, alpha * sum.y, alpha * sum.z, alpha * sum.w);
        if (beta != 0.0f) {
            const float4 old = *p;
            result.x += beta * old.x;
            result.y += beta * old.y;
            result.z += beta * old.z;
            result.w += beta * old.w;
        }
        *p = result;
    });
    if (turn >= whole) step += blocks;
    __syncthreads();
    }
}
