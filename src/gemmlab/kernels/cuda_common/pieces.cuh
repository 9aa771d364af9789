// Who brings which piece of an operand's tile: index arithmetic, and no memory access.
//
// Tiles of both operands look alike from here: BK x X words in shared memory, k-major, where x counts rows of op(A) or
// columns of op(B). A piece is WIDTH neighbours in global memory, 1 or 4 floats. Where k lies along the rows there (A
// as it is, B transposed) the tile is TURNED on its way, and a piece becomes a column. Pieces are numbered, and of
// THREADS threads t brings those numbered t, t + THREADS, t + 2 * THREADS, ...:
//
//   as it lies: a piece is WIDTH x of one k           TURNED: a piece is WIDTH k of one x
//
//        x ->                                              k ->
//     k  0  1  2  3 ...   X / WIDTH pieces a row        x  0  1      PAIR pieces side by side, then the next x;
//        .  .  .  .                                        2  3      two of 16 bytes are a whole sector
//                                                          :
//
// This is the one order of all tiles that may be TURNED; tiles that are copied as they lie are in copied_tile.cuh.
// Three ways to go along it differ in where they look at the matrix's end: Pieces (below) at each piece, Stream
// (stream.cuh) once, before the loop, and Share (maxas_share.cuh) once too, with texture indices in place of pointers.
#pragma once

#include "tile.cuh"

template <int X, int THREADS, bool TURNED, int WIDTH, int PAIR>
struct PieceOrder {
    static constexpr int ALONG_K = TURNED ? WIDTH : 1;  // floats of a piece
    static constexpr int ALONG_X = TURNED ? 1 : WIDTH;

    // Place of a piece in the tile: k in [0, BK), x in [0, X). Stream has at most PAIR * X threads, so that a thread's
    // first piece needs no division by X there.
    static __device__ __forceinline__ int k(unsigned number)
    {
        return TURNED ? number / (PAIR * X) * (PAIR * WIDTH) + number % PAIR * WIDTH : number / (X / WIDTH);
    }
    static __device__ __forceinline__ int x(unsigned number)
    {
        return TURNED ? number / PAIR % X : number % (X / WIDTH) * WIDTH;
    }

    // From a thread's first piece to its i-th: the same way for all threads, so that it is worked out once.
    static constexpr __device__ int to_k(int i)
    {
        return TURNED ? i * THREADS / (PAIR * X) * (PAIR * WIDTH) : i * THREADS / (X / WIDTH);
    }
    static constexpr __device__ int to_x(int i)
    {
        return TURNED ? i * THREADS / PAIR % X : i * THREADS % (X / WIDTH) * WIDTH;
    }
};

// Pieces of four floats, guarded one by one. Rows of a TURNED tile are 4 words longer in shared memory: word (k, x)
// lies in bank 4 k + x, and the 8 k and 16 x of a warp's turned pieces meet in no bank. Every row still begins at a
// multiple of 16 bytes.
template <int X, int BK, int THREADS, bool TURNED>
struct Pieces {
    using Order = PieceOrder<X, THREADS, TURNED, 4, 2>;
    static constexpr int LD = TURNED ? X + 4 : X;         // words from one k to the next in shared memory
    static constexpr int COUNT = X * BK / (4 * THREADS);  // pieces a thread brings
    static_assert(COUNT * 4 * THREADS == X * BK && X % 4 == 0, "the tile must divide evenly among the threads");
    static_assert(!TURNED || BK % 8 == 0, "a row must divide into pairs of pieces");
    static_assert(TURNED ? 2 * X % THREADS == 0 || THREADS % (2 * X) == 0 : THREADS % (X / 4) == 0,
                  "rows and threads must divide each other");

    // Place of the thread's i-th piece in the tile.
    static __device__ __forceinline__ int k(int i) { return Order::k(threadIdx.x + i * THREADS); }
    static __device__ __forceinline__ int x(int i) { return Order::x(threadIdx.x + i * THREADS); }

    static __device__ __forceinline__ int word(int i) { return k(i) * LD + x(i); }  // in shared memory

    // From the matrix's word (k, x) = (0, 0) of the tile to the thread's first piece.
    static __device__ __forceinline__ const float* first(const float* tile, int ld)
    {
        return TURNED ? tile + x(0) * static_cast<Offset>(ld) + k(0) : tile + k(0) * static_cast<Offset>(ld) + x(0);
    }
    // The i-th piece, from the first on.
    static __device__ __forceinline__ const float* piece(const float* first, int i, int ld)
    {
        const int to_k = Order::to_k(i), to_x = Order::to_x(i);
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
