// The product of a block for operands that cannot be read as float4: the flow of async_copy, float by float. No rung is
// about this.
#pragma once

#include "pipelined.cuh"

// Adds `depth` terms, maybe none, to the sums. `shared` holds STAGES tiles of A and B; `at` is where this thread's
// parts lie.
template <
    int BM, int BN, int BK, int STAGES, int THREADS, int APART_M, int APART_N, bool TRANS_A, bool TRANS_B,
    int PART_M = 4, int PART_N = 4, int TM, int TN>
__device__ __forceinline__ void multiply_unaligned(
    float (&sums)[TM][TN], float* shared, LanePlace at, int depth, const float* A, int lda, int rows, const float* B,
    int ldb, int cols)
{
    multiply_pipelined<BM, BN, BK, STAGES, THREADS, APART_M, APART_N, TRANS_A, TRANS_B, 1, 1, PART_M, PART_N>(
        sums, shared, at, depth, A, lda, rows, B, ldb, cols);
}
