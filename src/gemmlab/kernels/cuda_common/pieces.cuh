// The pieces of an operand's tiles that each thread brings, one tile after the other along k: index arithmetic and
// pointers, and no memory access. They go through registers or by cp.async; that is the rung's.
//
// Tiles of both operands look alike from here: BK x X words in shared memory, k-major, where x counts rows of op(A) or
// columns of op(B). A piece is WIDTH neighbours in global memory, 1 or 4 floats. Where k lies along the rows there (A
// as it is, B transposed) the tile is TURNED on its way, and a piece becomes a column. Pieces are numbered, and of
// THREADS threads t brings those numbered t, t + THREADS, t + 2 * THREADS, ...:
//
//   as it lies: a piece is WIDTH x of one k           TURNED: a piece is WIDTH k of one x
//
//        x ->                                              k ->
//     k  0  1  2  3 ...   X / WIDTH pieces a row        x  0  1      PAIR pieces side by side, then the next x: a
//        .  .  .  .                                        2  3      sector of 32 bytes, by 8 or 2 lanes side by side
//                                                          :
//
// This is the one order of all tiles that may be TURNED; tiles that are copied as they lie are in copied_tile.cuh.
#pragma once

#include "four.cuh"
#include "tile.cuh"

template <int X, int THREADS, bool TURNED, int WIDTH, int PAIR>
struct PieceOrder {
    static constexpr int ALONG_K = TURNED ? WIDTH : 1;  // floats of a piece
    static constexpr int ALONG_X = TURNED ? 1 : WIDTH;

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

// All rows are 4 words longer in shared memory. A turned element (k, x) goes to bank 4 k + x where 32 divides X: the 8
// k and 4 x of a warp are 32 banks, and so are the 2 * 4 k and 16 x of a warp that turns float4.
//
// The matrix's end is looked at in one of two ways: at each piece (`existing`), or once, before the loop. In the second
// way, along x the last piece inside stands in for those outside: its products land in results that nobody stores.
// Along k the ragged block comes first and begins before the matrix:
//
//   k   -3 -2 -1 | 0  1  2  3  4 | 5 ...          BK = 8, K = 13: `missing` = 3 terms, which are zeros unread
//       [ first block            ] [ second
template <int X, int BK, int THREADS, bool TURNED, int FLOATS = 4>
struct Pieces {
    static constexpr int WIDTH = FLOATS;    // of a piece
    static constexpr int PAIR = 8 / WIDTH;  // pieces of a sector
    using Order = PieceOrder<X, THREADS, TURNED, WIDTH, PAIR>;
    static constexpr int LD = X + 4;
    static constexpr int WORDS = BK * LD;                     // of a tile in shared memory
    static constexpr int COUNT = X * BK / (WIDTH * THREADS);  // pieces of a thread
    // Lanes beside each other along x, all of them in one row of pieces; each has STEPS_X pieces in a row.
    static constexpr int IN_ROW = TURNED ? PAIR * X : X / WIDTH;  // pieces of a row of pieces
    static constexpr int LANES_X = (IN_ROW < THREADS ? IN_ROW : THREADS) / (TURNED ? PAIR : 1);
    static constexpr int STEPS_X = X / (LANES_X * Order::ALONG_X);
    static_assert(LANES_X * STEPS_X * Order::ALONG_X == X && THREADS % LANES_X == 0 && X % 4 == 0,
                  "rows of the tile must divide evenly among the threads");
    static_assert(COUNT * WIDTH * THREADS == X * BK && BK % (TURNED ? 8 : 1) == 0, "the tile must, too");

    // Whether float4 will do: they must be aligned, and lie wholly inside or outside of the matrix.
    static __device__ __forceinline__ bool in_fours(const float* src, int ld, int extent, int depth)
    {
        return rows_are_aligned(src, ld) && (TURNED ? depth % 4 == 0 : extent >= X || extent % 4 == 0);
    }

    // For pieces that are looked at one by one. `src` is element (k, x) = (0, 0) of the first tile. Steps of k in a
    // TURNED tile are `along` words apart, which is 1; where registers are short, blockDim.y saves some: see `stride`.
    __device__ __forceinline__ Pieces(const float* src, int ld, int along = 1) : Pieces(src, ld, NO_END, 0)
    {
        if (TURNED) stride = along;
    }

    // For pieces that are not: `extent` >= 1 is how many x there are from `src` on.
    __device__ __forceinline__ Pieces(const float* src, int ld, int extent, int missing)
    {
        const int lane_k = first_lane_k(), lane_x = first_lane_x();
        first_k = lane_k * Order::ALONG_K;
        at = first_k * LD + lane_x * Order::ALONG_X;
        stride = TURNED ? blockDim.y : ld;  // blockDim.y is 1, which the compiler cannot know: see `stride`
#pragma unroll
        for (int i = 0; i < STEPS_X; ++i) {
            const int x = min((lane_x + i * LANES_X) * Order::ALONG_X, extent - Order::ALONG_X);
            const Offset k = first_k - missing;  // may lie before the matrix: such pieces are never read
            from[i] = src + (TURNED ? x * static_cast<Offset>(ld) + k : k * ld + x);
        }
    }

    // Whether the thread's i-th piece of the first tile exists, which lacks `missing` k.
    __device__ __forceinline__ bool exists(int i, int missing) const { return first_k + Order::to_k(i) >= missing; }

    // How many floats of the i-th piece exist where the matrix has `extent` x and `depth` k from the tile on: any
    // number from below 0 to beyond WIDTH.
    __device__ __forceinline__ int existing(int i, int extent, int depth) const
    {
        const int k = first_lane_k() * Order::ALONG_K + Order::to_k(i);  // anew: a register less in the loop
        const int x = first_lane_x() * Order::ALONG_X + Order::to_x(i);
        return TURNED ? (x < extent ? depth - k : 0) : (k < depth ? extent - x : 0);
    }

    // The i-th piece of the present tile in global memory, and its word in a tile in shared memory.
    __device__ __forceinline__ const float* piece(int i) const
    {
        return from[i % STEPS_X] + Order::to_k(i) * static_cast<Offset>(stride);
    }
    __device__ __forceinline__ int word(int i) const { return at + Order::to_k(i) * LD + Order::to_x(i); }

    // Goes on to the next tile: some steps after the copies were started, when they have read their addresses.
    __device__ __forceinline__ void advance()
    {
#pragma unroll
        for (int i = 0; i < STEPS_X; ++i) from[i] += BK * static_cast<Offset>(stride);
    }

private:
    static constexpr int NO_END = 0x7fffffff;

    // The thread's first piece, in pieces along k and along x. With at most PAIR * X threads it needs no division by X.
    static __device__ __forceinline__ int first_lane_k()
    {
        if constexpr (!TURNED) return threadIdx.x / LANES_X;
        else if constexpr (THREADS > PAIR * X) return threadIdx.x / (PAIR * X) * PAIR + threadIdx.x % PAIR;
        else return threadIdx.x % PAIR;
    }
    static __device__ __forceinline__ int first_lane_x()  // [0, LANES_X)
    {
        if constexpr (!TURNED) return threadIdx.x % LANES_X;
        else if constexpr (THREADS > PAIR * X) return threadIdx.x / PAIR % X;
        else return threadIdx.x / PAIR;
    }

    // A 64-bit address advances by a product in one instruction (IMAD.WIDE), by a constant in two. Hence `stride`.
    const float* from[STEPS_X];  // of the thread's first k
    int stride;                  // from one k to the next
    int first_k;                 // [0, BK)
    int at;                      // word of the first piece in shared memory
};
