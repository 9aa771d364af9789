// C = alpha * sum + beta * C, for one element and for a thread's piece of a row.
#pragma once

#include "four.cuh"
#include "tile.cuh"

// beta == 0 does not read C, which may hold NaN or nothing at all.
__device__ __forceinline__ void store_element(float* c, float alpha, float sum, float beta)
{
    float result = alpha * sum;
    if (beta != 0.0f) result += beta * *c;
    *c = result;
}

// COUNT (a multiple of 4) neighbours in a row, of which the first `cols` exist. `vectors` says that `c` is aligned.
template <int COUNT>
__device__ __forceinline__ void store_row(
    float* c, int cols, bool vectors, float alpha, const float (&sums)[COUNT], float beta)
{
#pragma unroll
    for (int j = 0; j < COUNT; j += 4) {
        float4 result = make_float4(alpha * sums[j], alpha * sums[j + 1], alpha * sums[j + 2], alpha * sums[j + 3]);
        if (beta != 0.0f) {
            const float4 old = load_four(c + j, cols - j, vectors);
            result.x += beta * old.x;
            result.y += beta * old.y;
            result.z += beta * old.z;
            result.w += beta * old.w;
        }
        store_four(c + j, cols - j, vectors, result);
    }
}

// TM x TN neighbours, TN a multiple of 4. `c` is the first of them in C, which has `rows` and `cols` from there on.
template <int TM, int TN>
__device__ __forceinline__ void store_tile(
    float* c, int ldc, int rows, int cols, bool vectors, float alpha, const float (&sums)[TM][TN], float beta)
{
#pragma unroll
    for (int i = 0; i < TM; ++i)
        if (i < rows) store_row(c + i * static_cast<Offset>(ldc), cols, vectors, alpha, sums[i], beta);
}
