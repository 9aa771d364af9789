// Which pieces of an operand's tiles each thread brings, one tile after the other along k, where the steady loop has no
// guard: index arithmetic and pointers, and no memory access.
//
// Both operands look alike from here. `x` counts rows of op(A) or columns of op(B), and a tile is BK x X in shared
// memory, x along a row of X + 4 words. In global memory a tile lies the same way, or with k along its rows; then it
// is TURNED on its way. The threads of a block share the work in pieces of WIDTH floats:
//
//   as it is: lanes go along x                TURNED: eight k, then the next x
//
//        x ->                                      k ->
//     k  0  1  2  3 ...                         x  0 1 2 3 4 5 6 7      32 bytes, one sector
//        .  .  .  .                                8 9 ...
//
//   A turned element (k, x) goes to word k * (X + 4) + x: bank 4k + x where 32 divides X. The 8 k and 4 x of a warp
//   are 32 banks; so are the 2 * 4 k and 16 x of a warp that turns float4.
//
// Where the matrix ends along x, the last piece inside stands in for those outside: its products land in results that
// nobody stores. Along k the ragged block comes first and begins before the matrix:
//
//   k   -3 -2 -1 | 0  1  2  3  4 | 5 ...          BK = 8, K = 13: `missing` = 3 terms, which are zeros unread
//       [ first block            ] [ second
#pragma once

#include "four.cuh"
#include "tile.cuh"

template <int X, int BK, int THREADS, bool TURNED, int FLOATS>
struct Stream {
    static constexpr int WIDTH = FLOATS;   // of a piece
    static constexpr int LD = X + 4;
    static constexpr int WORDS = BK * LD;  // of a tile in shared memory
    static constexpr int LANES_K = TURNED ? 8 / WIDTH : (X / WIDTH < THREADS ? THREADS / (X / WIDTH) : 1);
    static constexpr int LANES_X = THREADS / LANES_K;
    static constexpr int ALONG_K = TURNED ? WIDTH : 1;  // floats of a piece
    static constexpr int ALONG_X = TURNED ? 1 : WIDTH;
    static constexpr int STEPS_K = BK / (LANES_K * ALONG_K);
    static constexpr int STEPS_X = X / (LANES_X * ALONG_X);
    static constexpr int COUNT = STEPS_K * STEPS_X;  // pieces of a thread
    static_assert(LANES_X * LANES_K == THREADS && X % 32 == 0, "rows of the tile must divide evenly among the threads");
    static_assert(LANES_K * STEPS_K * ALONG_K == BK && LANES_X * STEPS_X * ALONG_X == X, "the tile must, too");

    // Whether float4 will do: they must be aligned, and lie wholly inside or outside of the matrix.
    static __device__ __forceinline__ bool in_fours(const float* src, int ld, int extent, int depth)
    {
        return rows_are_aligned(src, ld) && (TURNED ? depth % 4 == 0 : extent >= X || extent % 4 == 0);
    }

    // `src` is element (k, x) = (0, 0) of the first tile, `extent` >= 1 how many x there are from it on.
    __device__ __forceinline__ Stream(const float* src, int ld, int extent, int missing)
    {
        const int lane_k = TURNED ? threadIdx.x % LANES_K : threadIdx.x / LANES_X;  // [0, LANES_K)
        const int lane_x = TURNED ? threadIdx.x / LANES_K : threadIdx.x % LANES_X;  // [0, LANES_X)
        first_k = lane_k * ALONG_K;
        at = first_k * LD + lane_x * ALONG_X;
        stride = TURNED ? blockDim.y : ld;  // blockDim.y is 1, which the compiler cannot know: see `stride`
#pragma unroll
        for (int i = 0; i < STEPS_X; ++i) {
            const int x = min((lane_x + i * LANES_X) * ALONG_X, extent - ALONG_X);
            const Offset k = first_k - missing;  // may lie before the matrix: such pieces are never read
            from[i] = src + (TURNED ? x * static_cast<Offset>(ld) + k : k * ld + x);
        }
    }

    // Whether the thread's i-th piece of the first tile exists, which lacks `missing` k.
    __device__ __forceinline__ bool exists(int i, int missing) const { return first_k + to_k(i) >= missing; }

    // The i-th piece of the present tile in global memory, and its word in a tile in shared memory.
    __device__ __forceinline__ const float* piece(int i) const
    {
        return from[i % STEPS_X] + to_k(i) * static_cast<Offset>(stride);
    }
    __device__ __forceinline__ int word(int i) const { return at + to_k(i) * LD + i % STEPS_X * LANES_X * ALONG_X; }

    // Goes on to the next tile: some steps after the copies were started, when they have read their addresses.
    __device__ __forceinline__ void advance()
    {
#pragma unroll
        for (int i = 0; i < STEPS_X; ++i) from[i] += BK * static_cast<Offset>(stride);
    }

private:
    static constexpr __device__ int to_k(int i) { return i / STEPS_X * LANES_K * ALONG_K; }

    // A 64-bit address moves by one instruction where the way is a product (IMAD.WIDE), by two where it is a constant.
    const float* from[STEPS_X];  // of the thread's first k
    int stride;                  // from one k to the next
    int first_k;                 // [0, BK)
    int at;                      // word of the first piece in shared memory
};
