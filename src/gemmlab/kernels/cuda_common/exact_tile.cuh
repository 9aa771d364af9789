// A tile by float32 multiply-adds in the order of k, for kernels that compute other tiles on tensor cores. No rung is
// about this.
#pragma once

#include "epilogue.cuh"
#include "tile.cuh"

constexpr int EXACT_DEPTH = 8;     // of k, that lie in shared memory at a time
constexpr int EXACT_THREADS = 256;
constexpr int EXACT_PIECE = 8;     // rows of a thread

template <int BM, int BN>
constexpr int EXACT_FLOATS = EXACT_DEPTH * (BM + 4 + BN + 4);

// C = alpha * (A B) + beta * C for one tile of `rows` x `cols` whose first row of A and first column of B are given, by
// threads 128 .. 383 of a block. Every sum is one chain in the order of k, so special values go as they do there.
template <int BM, int BN, bool TRANS_A, bool TRANS_B>
__device__ __forceinline__ void store_exact_tile(
    float* shared, int depth, const float* A, int lda, int row, const float* B, int ldb, int col, float alpha,
    float beta, float* c, int ldc, int rows, int cols)
{
    constexpr int TM = EXACT_PIECE, TN = BM * BN / EXACT_THREADS / TM;
    float(*const as)[BM + 4] = reinterpret_cast<float(*)[BM + 4]>(shared);
    float(*const bs)[BN + 4] = reinterpret_cast<float(*)[BN + 4]>(shared + EXACT_DEPTH * (BM + 4));
    const int thread = threadIdx.x - 128;                                // [0, 256)
    const int m0 = thread / (BN / TN) * TM, n0 = thread % (BN / TN) * TN;  // the thread's results in the tile
    A += TRANS_A ? row : row * static_cast<Offset>(lda);
    B += TRANS_B ? col * static_cast<Offset>(ldb) : col;
    float sums[TM][TN] = {};
    for (int first = 0; first < depth; first += EXACT_DEPTH) {
        const int left = depth - first;
#pragma unroll
        for (int i = thread; i < BM * EXACT_DEPTH; i += EXACT_THREADS) {
            const int m = TRANS_A ? i % BM : i / EXACT_DEPTH, k = TRANS_A ? i / BM : i % EXACT_DEPTH;
            const Offset at =
                TRANS_A ? (first + k) * static_cast<Offset>(lda) + m : m * static_cast<Offset>(lda) + first + k;
            as[k][m] = m < rows && k < left ? A[at] : 0.0f;
        }
#pragma unroll
        for (int i = thread; i < BN * EXACT_DEPTH; i += EXACT_THREADS) {
            const int n = TRANS_B ? i / EXACT_DEPTH : i % BN, k = TRANS_B ? i % EXACT_DEPTH : i / BN;
            const Offset at =
                TRANS_B ? n * static_cast<Offset>(ldb) + first + k : (first + k) * static_cast<Offset>(ldb) + n;
            bs[k][n] = n < cols && k < left ? B[at] : 0.0f;
        }
        asm volatile("bar.sync 1, %0;" ::"n"(EXACT_THREADS) : "memory");
        for (int k = 0; k < min(left, EXACT_DEPTH); ++k) {
            float a[TM], b[TN];
#pragma unroll
            for (int i = 0; i < TM; ++i) a[i] = as[k][m0 + i];
#pragma unroll
            for (int j = 0; j < TN; ++j) b[j] = bs[k][n0 + j];
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TN; ++j) sums[i][j] += a[i] * b[j];
        }
        asm volatile("bar.sync 1, %0;" ::"n"(EXACT_THREADS) : "memory");
    }
    store_tile(
        c + m0 * static_cast<Offset>(ldc) + n0, ldc, rows - m0, cols - n0, rows_are_aligned(c, ldc), alpha, sums, beta);
}
