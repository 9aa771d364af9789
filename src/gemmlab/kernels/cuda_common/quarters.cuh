// A thread's words of As and Bs, and its results in C, in parts that lie APART floats from each other. A part is 4
// floats (see lane_map.cuh) or a multiple of 4.
#pragma once

#include "epilogue.cuh"
#include "lane_map.cuh"
#include "tile.cuh"

// COUNT floats of a row in shared memory, one LDS.128 for four. `src` is a multiple of 16 bytes.
template <int APART, int PART = 4, int COUNT>
__device__ __forceinline__ void load_parts(float (&frag)[COUNT], const float* src)
{
    static_assert(COUNT % 4 == 0 && APART % 4 == 0 && PART % 4 == 0, "parts are read as float4");
#pragma unroll
    for (int i = 0; i < COUNT / 4; ++i) {
        const float4 four = *reinterpret_cast<const float4*>(src + 4 * i / PART * APART + 4 * i % PART);
        frag[4 * i] = four.x;
        frag[4 * i + 1] = four.y;
        frag[4 * i + 2] = four.z;
        frag[4 * i + 3] = four.w;
    }
}

// TM x TN results in parts of PART_M x PART_N. `c` is the first of them in C, which has `rows` and `cols` from there.
template <int APART_M, int APART_N, int PART_M = 4, int PART_N = 4, int TM, int TN>
__device__ __forceinline__ void store_parts(
    float* c, int ldc, int rows, int cols, bool vectors, float alpha, const float (&sums)[TM][TN], float beta)
{
#pragma unroll
    for (int i = 0; i < TM; ++i) {
        const int row = i / PART_M * APART_M + i % PART_M;
        if (row >= rows) return;
        float* first = c + row * static_cast<Offset>(ldc);
#pragma unroll
        for (int j = 0; j < TN; j += 4) {
            const int col = j / PART_N * APART_N + j % PART_N;
            const float four[4] = {sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]};
            store_row(first + col, cols - col, vectors, alpha, four, beta);
        }
    }
}

// 8 x 8 results of each lane in quarters APART from each other, by way of shared memory: `patch` has 256 words for the
// warp alone. In each of eight turns a warp has four rows of 2 x 32 results, four neighbours a lane, and turns them so
// that 32 lanes hold 32 neighbours:
//
//      row    0..3 of the lanes' rows        a store of the warp: 32 lanes, 128 bytes, 4 sectors
//      0     [l0  ][l1  ]  ...  [l7  ]        0 1 2 3 4 5  ...  31
//      1     [l8  ][l9  ]  ...  [l15 ]        0 1 2 3 4 5  ...  31      (lanes as in a scan)
//
// Every second row is moved by 16 banks, because in z-order eight lanes that write together have two rows. `c` is the
// block's tile in C, which has `rows` and `cols` from there on; the warp begins at `row` and `col` in it, and the lane
// at `place` in the warp.
template <int APART>
__device__ __forceinline__ void store_turned(
    float* patch, LanePlace place, float* c, int ldc, int row, int col, int rows, int cols, float alpha,
    const float (&sums)[8][8], float beta)
{
    const int lane = threadIdx.x % 32;
    const auto swizzled = [](int r, int s) { return r * 64 + (s ^ r % 2 * 16); };
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        __syncwarp();  // the turn before has been read
#pragma unroll
        for (int part = 0; part < 2; ++part)
            *reinterpret_cast<float4*>(patch + swizzled(place.row / 4, 32 * part + place.col)) = make_float4(
                sums[i][4 * part], sums[i][4 * part + 1], sums[i][4 * part + 2], sums[i][4 * part + 3]);
        __syncwarp();
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            const int r = row + j / 2 * 4 + i % 4 + i / 4 * APART, s = col + lane + j % 2 * APART;
            if (r < rows && s < cols)
                store_element(
                    c + r * static_cast<Offset>(ldc) + s, alpha, patch[swizzled(j / 2, j % 2 * 32 + lane)], beta);
        }
    }
}
