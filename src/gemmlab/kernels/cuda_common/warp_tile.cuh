// A warp's part of the block's tile, and a thread's part of the warp's.
//
//   block tile BM x BN                  warp tile WM x WN                      subtile SUB_M x SUB_N
//        +-------+-------+                  +------+------+                        +---+---+---+---+
//        |warp 0 |warp 1 | WM               |      |      | SUB_M                  | 0 | 1 | 2 | 3 | TM    32 lanes,
//     BM +-------+-------+             WM   +------+------+                  SUB_M +---+---+---+---+       TM x TN sums
//        |warp 2 |warp 3 |                  |      |      |                        | 4 | 5 | 6 | 7 |       each
//        +-------+-------+                  +------+------+                        :   :   :   :   :
//           WN                               SUB_N                                   TN
//          BN / WN warps beside        WMITER x WNITER subtiles,               SUB_N / TN lanes beside
//          each other                  each thread is in all of them           each other
//
// One step k of a warp reads WM + WN neighbouring words, however many warps the block has. Lanes beside each other read
// the same words of A and neighbouring words of B, TN = 4 of them 16 bytes: no two meet in a bank.
#pragma once

#include "epilogue.cuh"
#include "fragment.cuh"
#include "tile.cuh"

// The multiply-adds of a step: PIECES, one TM x TN after the other; or ROWS, along each row of all the thread's pieces,
// every second row backwards. ROWS is what the compiler makes the better code of: it reads every word of shared memory
// at least ten multiply-adds before its use, where with PIECES it reads a fifth of them later than that.
constexpr int PIECES = 0;
constexpr int ROWS = 1;

template <int BN, int WM, int WN, int WNITER, int TM, int TN, int ORDER>
struct WarpTile {
    static constexpr int WMITER = WM * WN / (32 * TM * TN * WNITER);
    static constexpr int SUB_M = WM / WMITER, SUB_N = WN / WNITER;
    static_assert(SUB_M * SUB_N == 32 * TM * TN && SUB_N % TN == 0, "32 lanes must cover a subtile");

    // First row and column of the thread's first TM x TN in the block's tile. The others are SUB_M, 2 * SUB_M, ... rows
    // below and SUB_N, 2 * SUB_N, ... columns to the right of it.
    const int row;
    const int col;
    float sums[WMITER][WNITER][TM][TN] = {};

    // A thread's words of one step k.
    struct Fragment {
        float a[WMITER][TM];
        float b[WNITER][TN];
    };

    __device__ __forceinline__ WarpTile()
        : row(threadIdx.x / 32 / (BN / WN) * WM + threadIdx.x % 32 / (SUB_N / TN) * TM),
          col(threadIdx.x / 32 % (BN / WN) * WN + threadIdx.x % 32 % (SUB_N / TN) * TN)
    {
    }

    // From row k of As and of Bs.
    __device__ __forceinline__ void load(Fragment& frag, const float* a, const float* b) const
    {
#pragma unroll
        for (int m = 0; m < WMITER; ++m) load_fragment(frag.a[m], a + row + m * SUB_M);
#pragma unroll
        for (int n = 0; n < WNITER; ++n) load_fragment(frag.b[n], b + col + n * SUB_N);
    }

    __device__ __forceinline__ void add(const Fragment& frag)
    {
        if constexpr (ORDER == PIECES) {
#pragma unroll
            for (int m = 0; m < WMITER; ++m)
#pragma unroll
                for (int n = 0; n < WNITER; ++n) add_outer_product(sums[m][n], frag.a[m], frag.b[n]);
        } else {
#pragma unroll
            for (int i = 0; i < WMITER * TM; ++i)
#pragma unroll
                for (int step = 0; step < WNITER * TN; ++step) {
                    const int j = i % 2 ? WNITER * TN - 1 - step : step;
                    sums[i / TM][j / TN][i % TM][j % TN] += frag.a[i / TM][i % TM] * frag.b[j / TN][j % TN];
                }
        }
    }

    // `c` is the first element of the block's tile, and C has `rows` and `cols` from there on.
    __device__ __forceinline__ void store(float* c, int ldc, int rows, int cols, float alpha, float beta) const
    {
        const bool vectors = rows_are_aligned(c, ldc);
#pragma unroll
        for (int m = 0; m < WMITER; ++m)
#pragma unroll
            for (int n = 0; n < WNITER; ++n) {
                const int r = row + m * SUB_M, s = col + n * SUB_N;
                store_tile(
                    c + r * static_cast<Offset>(ldc) + s, ldc, rows - r, cols - s, vectors, alpha, sums[m][n], beta);
            }
    }
};
