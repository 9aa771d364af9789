// One sum straight from global memory: what a thread does that shares nothing with others.
#pragma once

#include "tile.cuh"

// A row of A times a column of B, `depth` products. Two loads a multiply-add make the load unit the limit, so there is
// little besides: AHEAD steps a turn, where A's addresses are one register pair plus constants and B's cost one
// instruction each, and where loads of later steps need not wait for the first product.
constexpr int AHEAD = 16;

__device__ __forceinline__ float dot(const float* a, const float* b, int ldb, int depth)
{
    float sum = 0.0f;
#pragma unroll 1
    for (; depth >= AHEAD; depth -= AHEAD) {
#pragma unroll
        for (int k = 0; k < AHEAD; ++k) sum += a[k] * b[k * static_cast<Offset>(ldb)];
        a += AHEAD;
        b += AHEAD * static_cast<Offset>(ldb);
    }
#pragma unroll 1
    for (; depth > 0; --depth) {
        sum += *a++ * *b;
        b += ldb;
    }
    return sum;
}
