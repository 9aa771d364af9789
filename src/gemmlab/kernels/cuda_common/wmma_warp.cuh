// A warp's WM x WN sums in pieces of 16 x 16, made with WMMA.
#pragma once

#include "epilogue.cuh"
#include "fragment.cuh"
#include "wmma_tf32.cuh"

template <int WM, int WN>
struct WmmaWarp {
    static_assert(WM % 16 == 0 && WN % 16 == 0, "WMMA makes 16 x 16 sums");
    static constexpr int PATCH = 16 * 16;  // floats of shared memory that `store` needs

    WmmaSums sums[WM / 16][WN / 16];

    // BK steps, of WM rows of A and WN columns of B in shared memory.
    template <int BK, int A_LD, int B_LD>
    __device__ __forceinline__ void add(const float* a_tile, const float* b_tile)
    {
#pragma unroll
        for (int k = 0; k < BK; k += 8) {
            WmmaInput a[WM / 16], b[WN / 16];
#pragma unroll
            for (int i = 0; i < WM / 16; ++i) load_rounded_a<A_LD>(a[i], a_tile + 16 * i * A_LD + k);
#pragma unroll
            for (int j = 0; j < WN / 16; ++j) load_rounded_b<B_LD>(b[j], b_tile + k * B_LD + 16 * j);
#pragma unroll
            for (int i = 0; i < WM / 16; ++i)
#pragma unroll
                for (int j = 0; j < WN / 16; ++j) add_product(sums[i][j], a[i], b[j]);
        }
    }

    // Piece by piece through the warp's own `patch` of shared memory, because no one knows which lane has which sum.
    // `c` is the first of the warp's elements of C, of which `rows` x `cols` exist.
    __device__ __forceinline__ void store(
        float* patch, float* c, int ldc, int rows, int cols, float alpha, float beta) const
    {
        const int x = threadIdx.x % 4 * 4;   // [0, 16) in steps of 4: the lane's columns of a piece
        const int y = threadIdx.x % 32 / 4;  // [0, 8): its first row; the other is 8 below
        const bool vectors = rows_are_aligned(c, ldc);
#pragma unroll
        for (int i = 0; i < WM; i += 16)
#pragma unroll
            for (int j = 0; j < WN; j += 16) {
                store_sums<16>(patch, sums[i / 16][j / 16]);
                __syncwarp();
#pragma unroll
                for (int row = y; row < y + 16; row += 8) {
                    float four[4];
                    load_fragment(four, patch + row * 16 + x);
                    if (i + row < rows)
                        store_row(
                            c + (i + row) * static_cast<Offset>(ldc) + j + x, cols - j - x, vectors, alpha, four, beta);
                }
                __syncwarp();  // before the next piece takes its place
            }
    }
};
