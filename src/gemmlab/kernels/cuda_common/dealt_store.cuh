// C = alpha * sums + beta * C for a warp whose strips of lines are dealt as tf32_tile.cuh deals them.
#pragma once

#include "epilogue.cuh"
#include "tf32_tile.cuh"
#include "tile.cuh"

// Line l / 4 of A's strips is row 16 * (l / 4 % 2) + 4 * (l / 8) of 32. Lines 2 * (l % 4) and 2 * (l % 4) + 1 of B's
// strip j = 0 .. 3 are columns 4 * (l % 4) + j and 16 further. So four products give a lane four adjacent columns.
//
// The block computed the tile that begins at `row` and `col`, with `rows` x `cols` of C from there on; the warp begins at
// `warp_row` and `warp_col` in it. Results before `tile` are another block's to store.
template <int STRIPS, int EIGHTHS>
__device__ __forceinline__ void store_dealt(
    float* C, int ldc, Tile tile, int row, int col, int rows, int cols, int warp_row, int warp_col, float alpha,
    const float (&sums)[STRIPS][EIGHTHS][4], float beta)
{
    const int lane = threadIdx.x % 32;
    const bool vectors = rows_are_aligned(C + col, ldc);
    C += row * static_cast<Offset>(ldc) + col;
#pragma unroll
    for (int i = 0; i < STRIPS; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int r = warp_row + dealt(16 * i + 8 * half + lane / 4);
            if (r < tile.row - row || r >= rows) continue;
#pragma unroll
            for (int j = 0; j < EIGHTHS; j += 4)
#pragma unroll
                for (int odd = 0; odd < 2; ++odd) {
                    const int s = warp_col + dealt(8 * j + 2 * (lane % 4) + odd), at = 2 * half + odd;
                    const float four[4] = {sums[i][j][at], sums[i][j + 1][at], sums[i][j + 2][at], sums[i][j + 3][at]};
                    if (s >= tile.col - col)
                        store_row(C + r * static_cast<Offset>(ldc) + s, cols - s, vectors, alpha, four, beta);
                }
        }
}
