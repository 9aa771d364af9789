// A thread's piece of As, of Bs and of C, where it is in parts of 4 that lie APART floats from each other (see
// lane_map.cuh).
#pragma once

#include "epilogue.cuh"
#include "tile.cuh"

// COUNT floats of a row in shared memory: COUNT / 4 parts, one LDS.128 each. `src` is a multiple of 16 bytes.
template <int APART, int COUNT>
__device__ __forceinline__ void load_parts(float (&frag)[COUNT], const float* src)
{
    static_assert(COUNT % 4 == 0 && APART % 4 == 0, "parts are read as float4");
#pragma unroll
    for (int part = 0; part < COUNT / 4; ++part) {
        const float4 four = *reinterpret_cast<const float4*>(src + part * APART);
        frag[4 * part] = four.x;
        frag[4 * part + 1] = four.y;
        frag[4 * part + 2] = four.z;
        frag[4 * part + 3] = four.w;
    }
}

// TM x TN results in parts of 4 x 4. `c` is the first of them in C, which has `rows` and `cols` from there on.
template <int APART_M, int APART_N, int TM, int TN>
__device__ __forceinline__ void store_parts(
    float* c, int ldc, int rows, int cols, bool vectors, float alpha, const float (&sums)[TM][TN], float beta)
{
#pragma unroll
    for (int i = 0; i < TM; ++i) {
        const int row = i / 4 * APART_M + i % 4;
        if (row >= rows) return;
        float* first = c + row * static_cast<Offset>(ldc);
#pragma unroll
        for (int j = 0; j < TN; j += 4) {
            const int col = j / 4 * APART_N;
            const float four[4] = {sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]};
            store_row(first + col, cols - col, vectors, alpha, four, beta);
        }
    }
}
