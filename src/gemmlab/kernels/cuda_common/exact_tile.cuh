// A tile by float32 multiply-adds in the order of k, for kernels that compute other tiles on tensor cores. No rung is
// about this.
#pragma once

#include "epilogue.cuh"
#include "tile.cuh"

constexpr int EXACT_DEPTH = 8;     // of k, that lie in shared memory at a time
constexpr int EXACT_THREADS = 256;
constexpr int EXACT_PIECE = 8;     // rows of a thread

// C = alpha * (A B) + beta * C for one tile of `rows` x `cols` whose first row of A and first column of B are given, by
// EXACT_THREADS threads of a block from FIRST_THREAD on. With `some_apart`, elements for which apart(row, column) is
// true are left out. Every sum is one chain in the order of k, so NaN and infinities propagate as in a loop over k.
template <int BM, int BN, bool TRANS_A, bool TRANS_B, int FIRST_THREAD = 128, class Apart>
__device__ __forceinline__ void store_exact_tile(
    float* shared, int depth, const float* A, int lda, int row, const float* B, int ldb, int col, float alpha,
    float beta, float* c, int ldc, int rows, int cols, bool some_apart, Apart apart)
{
    constexpr int TM = EXACT_PIECE, TN = BM * BN / EXACT_THREADS / TM;
    float(*const as)[BM + 4] = reinterpret_cast<float(*)[BM + 4]>(shared);
    float(*const bs)[BN + 4] = reinterpret_cast<float(*)[BN + 4]>(shared + EXACT_DEPTH * (BM + 4));
    const int thread = threadIdx.x - FIRST_THREAD;                       // [0, 256)
    const int m0 = thread / (BN / TN) * TM, n0 = thread % (BN / TN) * TN;  // the thread's results in the tile
    A += TRANS_A ? row : row * static_cast<Offset>(lda);
    B += TRANS_B ? col * static_cast<Offset>(ldb) : col;
    // The elements that a thread brings for a step, the next one's while this one's are multiplied.
    constexpr int A_WORDS = BM * EXACT_DEPTH / EXACT_THREADS, B_WORDS = BN * EXACT_DEPTH / EXACT_THREADS;
    const auto m_of = [&](int i) { return TRANS_A ? i % BM : i / EXACT_DEPTH; };
    const auto n_of = [&](int i) { return TRANS_B ? i / EXACT_DEPTH : i % BN; };
    const auto a_k_of = [&](int i) { return TRANS_A ? i / BM : i % EXACT_DEPTH; };
    const auto b_k_of = [&](int i) { return TRANS_B ? i % EXACT_DEPTH : i / BN; };
    float a_words[A_WORDS], b_words[B_WORDS];
    const auto fetch = [&](int first) {
#pragma unroll
        for (int i = 0; i < A_WORDS; ++i) {
            const int m = m_of(thread + i * EXACT_THREADS), k = first + a_k_of(thread + i * EXACT_THREADS);
            const Offset at = TRANS_A ? k * static_cast<Offset>(lda) + m : m * static_cast<Offset>(lda) + k;
            a_words[i] = m < rows && k < depth ? A[at] : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < B_WORDS; ++i) {
            const int n = n_of(thread + i * EXACT_THREADS), k = first + b_k_of(thread + i * EXACT_THREADS);
            const Offset at = TRANS_B ? n * static_cast<Offset>(ldb) + k : k * static_cast<Offset>(ldb) + n;
            b_words[i] = n < cols && k < depth ? B[at] : 0.0f;
        }
    };
    float sums[TM][TN] = {};
    fetch(0);
    for (int first = 0; first < depth; first += EXACT_DEPTH) {
#pragma unroll
        for (int i = 0; i < A_WORDS; ++i)
            as[a_k_of(thread + i * EXACT_THREADS)][m_of(thread + i * EXACT_THREADS)] = a_words[i];
#pragma unroll
        for (int i = 0; i < B_WORDS; ++i)
            bs[b_k_of(thread + i * EXACT_THREADS)][n_of(thread + i * EXACT_THREADS)] = b_words[i];
        asm volatile("bar.sync 1, %0;" ::"n"(EXACT_THREADS) : "memory");
        if (depth - first > EXACT_DEPTH) fetch(first + EXACT_DEPTH);
        // Zeros behind the end would turn an infinity into a NaN, so there are no steps for them.
        const int steps = min(depth - first, EXACT_DEPTH);
        for (int k = 0; k < steps; ++k) {
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
    if (!some_apart) {
        store_tile(
            c + m0 * static_cast<Offset>(ldc) + n0, ldc, rows - m0, cols - n0, rows_are_aligned(c, ldc), alpha, sums,
            beta);
        return;
    }
#pragma unroll
    for (int i = 0; i < TM; ++i)
#pragma unroll
        for (int j = 0; j < TN; ++j)
            if (m0 + i < rows && n0 + j < cols && !apart(row + m0 + i, col + n0 + j))
                store_element(c + (m0 + i) * static_cast<Offset>(ldc) + n0 + j, alpha, sums[i][j], beta);
}
