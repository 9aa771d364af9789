// The tiles of A, or of B, that a block multiplies one after the other: from global into k-major shared memory.
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
// The steady loop has no guard. Where the matrix ends along x, the last piece inside stands in for those outside: its
// products land in results that nobody stores. Along k the ragged block comes first and begins before the matrix:
//
//   k   -3 -2 -1 | 0  1  2  3  4 | 5 ...          BK = 8, K = 13: `missing` = 3 terms, which are zeros unread
//       [ first block            ] [ second
#pragma once

#include "async_tile.cuh"
#include "four.cuh"
#include "tile.cuh"

template <int X, int BK, int THREADS, bool TURNED, bool ASYNC, int WIDTH>
struct TileStream {
    static constexpr bool ASYNCHRONOUS = ASYNC;
    static constexpr int LD = X + 4;
    static constexpr int WORDS = BK * LD;
    static constexpr int LANES_K = TURNED ? 8 / WIDTH : (X / WIDTH < THREADS ? THREADS / (X / WIDTH) : 1);
    static constexpr int LANES_X = THREADS / LANES_K;
    static constexpr int ALONG_K = TURNED ? WIDTH : 1;  // floats of a piece
    static constexpr int ALONG_X = TURNED ? 1 : WIDTH;
    static constexpr int STEPS_K = BK / (LANES_K * ALONG_K);
    static constexpr int STEPS_X = X / (LANES_X * ALONG_X);
    static_assert(!(ASYNC && TURNED) || WIDTH == 1, "cp.async turns single floats only");
    static_assert(ASYNC || WIDTH == 4, "single floats go by cp.async");
    static_assert(LANES_X * LANES_K == THREADS && X % 32 == 0, "rows of the tile must divide evenly among the threads");
    static_assert(LANES_K * STEPS_K * ALONG_K == BK && LANES_X * STEPS_X * ALONG_X == X, "the tile must, too");

    // Whether this WIDTH will do: pieces of four must be aligned, and lie wholly inside or outside of the matrix.
    static __device__ __forceinline__ bool fits(const float* src, int ld, int extent, int depth)
    {
        return WIDTH == 1 || (rows_are_aligned(src, ld) && (TURNED ? depth % 4 == 0 : extent >= X || extent % 4 == 0));
    }

    // `src` is element (k, x) = (0, 0) of the first tile, `extent` >= 1 how many x there are from it on.
    __device__ __forceinline__ TileStream(const float* src, int ld, int extent, int missing)
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

    // Starts the first tile on its way to `dst`, without its `missing` terms.
    __device__ __forceinline__ void start_first(float* dst, int missing)
    {
        each_piece([&](int s, int i, const float* src) {
            const bool exists = first_k + s * LANES_K * ALONG_K >= missing;
            if constexpr (!ASYNC) held[s][i] = exists ? *reinterpret_cast<const float4*>(src) : float4{};
            else if constexpr (WIDTH == 4) copy_four_async(dst + place(s, i), src, exists ? 4 : 0);
            else copy_one_async(dst + place(s, i), src, exists);
        });
    }

    // The same for any later tile, if it is `wanted`: by predicates, because a branch would cut the loop in pieces.
    __device__ __forceinline__ void start(float* dst, bool wanted)
    {
        each_piece([&](int s, int i, const float* src) {
            if constexpr (!ASYNC) load_four_if(wanted, held[s][i], src);
            else if constexpr (WIDTH == 4) copy_four_async_if(wanted, dst + place(s, i), src);
            else copy_one_async_if(wanted, dst + place(s, i), src);
        });
    }

    // Goes on to the next tile: some steps after the start, when the copies have read their addresses.
    __device__ __forceinline__ void advance()
    {
#pragma unroll
        for (int i = 0; i < STEPS_X; ++i) from[i] += BK * static_cast<Offset>(stride);
    }

    // The last step of a tile: what came through registers goes to `dst`.
    __device__ __forceinline__ void finish(float* dst) const
    {
        if constexpr (!ASYNC)
            each_piece([&](int s, int i, const float*) {
                float* const to = dst + place(s, i);
                if constexpr (TURNED) {
                    to[0 * LD] = held[s][i].x;
                    to[1 * LD] = held[s][i].y;
                    to[2 * LD] = held[s][i].z;
                    to[3 * LD] = held[s][i].w;
                } else {
                    *reinterpret_cast<float4*>(to) = held[s][i];
                }
            });
    }

private:
    template <class Visit>
    __device__ __forceinline__ void each_piece(const Visit& visit) const
    {
#pragma unroll
        for (int s = 0; s < STEPS_K; ++s)
#pragma unroll
            for (int i = 0; i < STEPS_X; ++i)
                visit(s, i, from[i] + s * LANES_K * ALONG_K * static_cast<Offset>(stride));
    }

    // Word of a piece in shared memory.
    __device__ __forceinline__ int place(int s, int i) const
    {
        return at + s * LANES_K * ALONG_K * LD + i * LANES_X * ALONG_X;
    }

    static __device__ __forceinline__ void load_four_if(bool wanted, float4& four, const float* src)
    {
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %5, 0; @p ld.global.v4.f32 {%0, %1, %2, %3}, [%4]; }"
                     : "+f"(four.x), "+f"(four.y), "+f"(four.z), "+f"(four.w)
                     : "l"(src), "r"(static_cast<int>(wanted)));
    }

    // A 64-bit address moves by one instruction where the way is a product (IMAD.WIDE), by two where it is a constant.
    const float* from[STEPS_X];                                    // of the thread's first k
    int stride;                                                    // from one k to the next
    int first_k;                                                   // [0, BK)
    int at;                                                        // word of the first piece in shared memory
    float4 held[ASYNC ? 1 : STEPS_K][ASYNC ? 1 : STEPS_X];         // on their way through registers
};
