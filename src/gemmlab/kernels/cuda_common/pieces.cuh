// Which pieces of a tile each thread of a block brings: index arithmetic, and no memory access.
//
// Tiles of both operands look alike from here: BK x X words in shared memory, k-major, where x counts rows of op(A) or
// columns of op(B). A piece is four neighbours in global memory, a float4. Where k lies along the rows there (A as it
// is, B transposed) the tile is TURNED on its way, and a piece becomes a column:
//
//   as it lies: a piece is four x of one k            TURNED: a piece is four k of one x
//
//        x ->                                              k ->
//     k  0  1  2  3 ...   X / 4 pieces a row            x  0  1      two pieces, 32 bytes and so a whole sector,
//        .  .  .  .                                        2  3      then the next x
//                                                          :
//
// Rows of a TURNED tile are 4 words longer in shared memory: word (k, x) lies in bank 4 k + x, and the 8 k and 16 x of
// a warp's turned pieces meet in no bank. Every row still begins at a multiple of 16 bytes.
#pragma once

#include "tile.cuh"

template <int X, int BK, int THREADS, bool TURNED>
struct Pieces {
    static constexpr int LD = TURNED ? X + 4 : X;         // words from one k to the next in shared memory
    static constexpr int COUNT = X * BK / (4 * THREADS);  // pieces a thread brings
    static_assert(COUNT * 4 * THREADS == X * BK && X % 4 == 0, "the tile must divide evenly among the threads");
    static_assert(!TURNED || BK % 8 == 0, "a row must divide into pairs of pieces");
    static_assert(TURNED ? 2 * X % THREADS == 0 || THREADS % (2 * X) == 0 : THREADS % (X / 4) == 0,
                  "rows and threads must divide each other");

    // Place of the thread's i-th piece in the tile: k in [0, BK), x in [0, X).
    static __device__ __forceinline__ int k(int i)
    {
        const unsigned at = threadIdx.x + i * THREADS;
        return TURNED ? 8 * (at / (2 * X)) + 4 * (at % 2) : at / (X / 4);
    }
    static __device__ __forceinline__ int x(int i)
    {
        const unsigned at = threadIdx.x + i * THREADS;
        return TURNED ? at / 2 % X : 4 * (at % (X / 4));
    }

    static __device__ __forceinline__ int word(int i) { return k(i) * LD + x(i); }  // in shared memory

    // From the matrix's word (k, x) = (0, 0) of the tile to the thread's first piece.
    static __device__ __forceinline__ const float* first(const float* tile, int ld)
    {
        return TURNED ? tile + x(0) * static_cast<Offset>(ld) + k(0) : tile + k(0) * static_cast<Offset>(ld) + x(0);
    }
    // The i-th piece, from the first on: the same way for all threads, so that it is worked out once.
    static __device__ __forceinline__ const float* piece(const float* first, int i, int ld)
    {
        const int to_k = TURNED ? 8 * (i * THREADS / 2 / X) : i * THREADS / (X / 4);
        const int to_x = TURNED ? i * THREADS / 2 % X : 0;
        return TURNED ? first + to_x * static_cast<Offset>(ld) + to_k : first + to_k * static_cast<Offset>(ld) + to_x;
    }
    // To the same piece of the next tile along k.
    static __device__ __forceinline__ Offset next_tile(int ld) { return TURNED ? BK : BK * static_cast<Offset>(ld); }

    // How many floats of the i-th piece exist where the matrix has `width` x and `depth` k from the tile on: any number
    // from below 0 to beyond 4.
    static __device__ __forceinline__ int existing(int i, int width, int depth)
    {
        return TURNED ? (x(i) < width ? depth - k(i) : 0) : (k(i) < depth ? width - x(i) : 0);
    }
};
