// Tiles from global into shared memory, zeros where the matrix has ended.
//
// A tile is given by its first element `src`, the leading dimension `ld` and how many `rows` and `cols` of the matrix
// there are from it on: fewer than ROWS or COLS at an edge. A block has THREADS threads in one dimension.
#pragma once

#include "four.cuh"
#include "tile.cuh"

// The lanes of a warp go along a row of the tile and then to the next one, so that their addresses in global memory
// are neighbours; or down the rows, so that a transposed tile is written to neighbours in shared memory.
constexpr int CONTIGUOUS = 0;
constexpr int STRIDED = 1;
// Two lanes beside each other, 32 bytes and so one whole sector, then down the rows: a turned tile whose rows in shared
// memory are 4 words more than a multiple of 32 is written without bank conflicts, for any COLS.
constexpr int PAIRED = 2;

// A tile on its way, float4 by float4, in the registers of a block: `fetch` starts the loads, `put` waits for them.
template <int ROWS, int COLS, int THREADS, int ORDER = CONTIGUOUS>
struct StagedTile {
    static constexpr int COUNT = ROWS * COLS / (4 * THREADS);  // float4 a thread
    static_assert(COUNT * 4 * THREADS == ROWS * COLS && COLS % 4 == 0, "the tile must divide evenly among the threads");
    static_assert(ORDER != PAIRED || COLS % 8 == 0, "a row must divide into pairs of float4");

    float4 held[COUNT];

    // Of the thread's i-th float4: row in [0, ROWS), column in [0, COLS) in steps of 4.
    static __device__ __forceinline__ int row(int i)
    {
        const unsigned at = threadIdx.x + i * THREADS;
        if (ORDER == PAIRED) return at / 2 % ROWS;
        return ORDER == CONTIGUOUS ? at / (COLS / 4) : at % ROWS;
    }
    static __device__ __forceinline__ int col(int i)
    {
        const unsigned at = threadIdx.x + i * THREADS;
        if (ORDER == PAIRED) return 8 * (at / (2 * ROWS)) + 4 * (at % 2);
        return 4 * (ORDER == CONTIGUOUS ? at % (COLS / 4) : at / ROWS);
    }

    __device__ __forceinline__ void fetch(const float* src, int ld, int rows, int cols, bool vectors)
    {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            const float* four = src + row(i) * static_cast<Offset>(ld) + col(i);
            held[i] = load_four(four, row(i) < rows ? cols - col(i) : 0, vectors);
        }
    }

    // How far the thread's i-th float4 lies from its first one, the same for all threads: with these a tile is fetched
    // from where each thread begins, and what differs from thread to thread is worked out once, not once a tile.
    static constexpr bool REGULAR =
        ORDER == CONTIGUOUS ? THREADS % (COLS / 4) == 0
                            : ORDER == PAIRED && (2 * ROWS % THREADS == 0 || THREADS % (2 * ROWS) == 0);
    static constexpr int rows_to(int i)
    {
        return ORDER == PAIRED ? i * THREADS / 2 % ROWS : i * THREADS / (COLS / 4);
    }
    static constexpr int cols_to(int i) { return ORDER == PAIRED ? 8 * (i * THREADS / 2 / ROWS) : 0; }

    static __device__ __forceinline__ const float* begin(const float* src, int ld)
    {
        return src + row(0) * static_cast<Offset>(ld) + col(0);
    }
    __device__ __forceinline__ void fetch_from(const float* mine, int ld, int rows, int cols, bool vectors)
    {
        static_assert(REGULAR, "rows and threads must divide each other");
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            const float* four = mine + rows_to(i) * static_cast<Offset>(ld) + cols_to(i);
            held[i] = load_four(four, row(i) < rows ? cols - col(i) : 0, vectors);
        }
    }

    // As it is, or with TURNED so that what was a row becomes a column: dst[c][r] = tile[r][c].
    template <int LD, bool TURNED>
    __device__ __forceinline__ void put(float* dst) const
    {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            const int r = row(i), c = col(i);
            if (!TURNED && LD % 4 == 0) {
                *reinterpret_cast<float4*>(&dst[r * LD + c]) = held[i];
            } else {
                constexpr int step = TURNED ? LD : 1;
                float* first = TURNED ? &dst[c * LD + r] : &dst[r * LD + c];
                first[0 * step] = held[i].x;
                first[1 * step] = held[i].y;
                first[2 * step] = held[i].z;
                first[3 * step] = held[i].w;
            }
        }
    }
};
