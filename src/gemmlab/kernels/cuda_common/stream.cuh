// The pieces of an operand's tiles that each thread brings, one tile after the other along k, where the steady loop has
// no guard: index arithmetic and pointers, and no memory access. pieces.cuh draws the order of the pieces. Here they
// are of 1 or 4 floats, and a TURNED sector of 32 bytes is brought by 8 or 2 lanes side by side.
//
// All rows are 4 words longer in shared memory. A turned element (k, x) goes to bank 4 k + x where 32 divides X: the 8
// k and 4 x of a warp are 32 banks, and so are the 2 * 4 k and 16 x of a warp that turns float4.
//
// Where the matrix ends along x, the last piece inside stands in for those outside: its products land in results that
// nobody stores. Along k the ragged block comes first and begins before the matrix:
//
//   k   -3 -2 -1 | 0  1  2  3  4 | 5 ...          BK = 8, K = 13: `missing` = 3 terms, which are zeros unread
//       [ first block            ] [ second
#pragma once

#include "four.cuh"
#include "pieces.cuh"
#include "tile.cuh"

template <int X, int BK, int THREADS, bool TURNED, int FLOATS>
struct Stream {
    static constexpr int WIDTH = FLOATS;    // of a piece
    static constexpr int PAIR = 8 / WIDTH;  // pieces of a sector
    using Order = PieceOrder<X, THREADS, TURNED, WIDTH, PAIR>;
    static constexpr int LD = X + 4;
    static constexpr int WORDS = BK * LD;                     // of a tile in shared memory
    static constexpr int COUNT = X * BK / (WIDTH * THREADS);  // pieces of a thread
    // Lanes beside each other along x, all of them in one row of pieces; each has STEPS_X pieces in a row.
    static constexpr int LANES_X = TURNED ? THREADS / PAIR : (X / WIDTH < THREADS ? X / WIDTH : THREADS);
    static constexpr int STEPS_X = X / (LANES_X * Order::ALONG_X);
    static_assert(LANES_X * STEPS_X * Order::ALONG_X == X && THREADS % LANES_X == 0 && X % 32 == 0,
                  "rows of the tile must divide evenly among the threads");
    static_assert(COUNT * WIDTH * THREADS == X * BK && BK % (TURNED ? 8 : 1) == 0, "the tile must, too");

    // Whether float4 will do: they must be aligned, and lie wholly inside or outside of the matrix.
    static __device__ __forceinline__ bool in_fours(const float* src, int ld, int extent, int depth)
    {
        return rows_are_aligned(src, ld) && (TURNED ? depth % 4 == 0 : extent >= X || extent % 4 == 0);
    }

    // `src` is element (k, x) = (0, 0) of the first tile, `extent` >= 1 how many x there are from it on.
    __device__ __forceinline__ Stream(const float* src, int ld, int extent, int missing)
    {
        const int lane_k = TURNED ? threadIdx.x % PAIR : threadIdx.x / LANES_X;
        const int lane_x = TURNED ? threadIdx.x / PAIR : threadIdx.x % LANES_X;  // [0, LANES_X)
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
    // A 64-bit address moves by one instruction where the way is a product (IMAD.WIDE), by two where it is a constant.
    const float* from[STEPS_X];  // of the thread's first k
    int stride;                  // from one k to the next
    int first_k;                 // [0, BK)
    int at;                      // word of the first piece in shared memory
};
