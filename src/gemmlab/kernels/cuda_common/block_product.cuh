// A block computes one tile of one product, for kernels that are about the choice of product and tile. The products of
// a launch may differ in everything: each block finds out by itself whether its operands can be read as float4.
#pragma once

#include "pipelined.cuh"
#include "tile.cuh"

// C = alpha * op(A) * op(B) + beta * C, op(A) M x K, op(B) K x N, as every kernel here takes it.
struct Product {
    int M, N, K;
    const float* A;
    int lda;
    const float* B;
    int ldb;
    float* C;
    int ldc;
};

// How many blocks should be resident on a multiprocessor, for __launch_bounds__: small tiles hide each other's latency,
// and their threads need few registers. A multiprocessor has four partitions, each with its own registers, so warps
// count in fours: with 9 blocks of two warps a partition has five warps, and a thread 96 registers, as with 10 blocks.
constexpr int resident_products(int BM, int BN, int threads)
{
    const int sums = BM * BN / threads;
    const int registers = sums > 64 ? 255 : sums > 32 && threads < 256 ? 168 : sums > 16 ? 128 : 80;
    const int blocks = 65536 / registers / threads;
    return blocks < 1 ? 1 : blocks > 16 ? 16 : blocks;
}

// The tile that begins at `tile`, which lies inside of C. `shared` holds STAGES tiles of op(A) and op(B). The product's C
// is `c_of(p)`, asked for when the sums are done: until then it takes no registers from them.
template <int BM, int BN, int BK, int TM, int TN, int STAGES, bool TRANS_A, bool TRANS_B, class COf>
__device__ __forceinline__ void
store_product_tile(const Product& p, Tile tile, float alpha, float beta, float* shared, const COf& c_of)
{
    constexpr int THREADS = (BM / TM) * (BN / TN);
    constexpr int LANES_M = TM > TN ? 4 : 8, LANES_N = 32 / LANES_M;  // lanes of a warp below and beside each other
    constexpr int WARPS_N = BN / (LANES_N * TN);                      // warps beside each other
    constexpr int APART_M = 4 * LANES_M, APART_N = 4 * LANES_N;       // rows and columns between a thread's quarters
    // What must be turned on its way comes float by float in any case.
    constexpr int A_WIDTH = TRANS_A ? 4 : 1, B_WIDTH = TRANS_B ? 1 : 4;

    const int rows = p.M - tile.row, cols = p.N - tile.col;  // of C from this tile on
    LanePlace at = lane_place<Z_ORDER, LANES_M, LANES_N>();  // this thread's first quarter in the block's tile:
    at.row += threadIdx.x / 32 / WARPS_N * LANES_M * TM;     // [0, BM)
    at.col += threadIdx.x / 32 % WARPS_N * LANES_N * TN;     // [0, BN)
    const float* const A = p.A + (TRANS_A ? tile.row : tile.row * static_cast<Offset>(p.lda));
    const float* const B = p.B + (TRANS_B ? tile.col * static_cast<Offset>(p.ldb) : tile.col);

    float sums[TM][TN] = {};
    const int depth = sum_depth(p.K, alpha);
    const bool a_fits = A_WIDTH == 1 || Pieces<BM, BK, THREADS, !TRANS_A, A_WIDTH>::in_fours(A, p.lda, rows, depth);
    const bool b_fits = B_WIDTH == 1 || Pieces<BN, BK, THREADS, TRANS_B, B_WIDTH>::in_fours(B, p.ldb, cols, depth);
    if (a_fits && b_fits)
        multiply_pipelined<BM, BN, BK, STAGES, THREADS, APART_M, APART_N, TRANS_A, TRANS_B, A_WIDTH, B_WIDTH>(
            sums, shared, at, depth, A, p.lda, rows, B, p.ldb, cols);
    else
        multiply_pipelined<BM, BN, BK, STAGES, THREADS, APART_M, APART_N, TRANS_A, TRANS_B, 1, 1>(
            sums, shared, at, depth, A, p.lda, rows, B, p.ldb, cols);

    // Rounded here, alpha * sum cannot become part of a multiply-add: all tiles of all sizes have the same bits.
#pragma unroll
    for (int i = 0; i < TM; ++i)
#pragma unroll
        for (int j = 0; j < TN; ++j) sums[i][j] = __fmul_rn(alpha, sums[i][j]);
    float* const c = c_of(p) + (tile.row + at.row) * static_cast<Offset>(p.ldc) + tile.col + at.col;
    store_parts<APART_M, APART_N>(
        c, p.ldc, rows - at.row, cols - at.col, rows_are_aligned(c, p.ldc), 1.0f, sums, beta);
}
