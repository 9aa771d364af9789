// Tiles of A and B that move along k, element by element into shared memory, with little work in the loop.
#pragma once

#include "tile.cuh"

// Neighbouring threads take neighbouring columns, and a thread's elements lie one below the other, STEP rows apart:
//
//                 COLS
//         +---------------------+
//         | 0  1  2  3  4  5  6 |  STEP         a block of 14 threads in a tile of 4 x 7: thread 3 has the elements
//         | 7  8  9 10 11 12 13 |               (0, 3) and (2, 3). One pointer serves both, STEP * ld apart.
//         | 0  1  2  3  4  5  6 |
//         | 7  8  9 10 11 12 13 |
//         +---------------------+
template <int ROWS, int COLS, int THREADS>
struct MovingTile {
    static_assert(THREADS % COLS == 0, "a thread must stay in its column");
    static constexpr int STEP = THREADS / COLS;
    static constexpr int COUNT = (ROWS + STEP - 1) / STEP;  // elements a thread; the last may lie below the tile

    const int ld;
    const float* from;

    // Of the thread's first element: row in [0, STEP), column in [0, COLS).
    static __device__ __forceinline__ int row() { return threadIdx.x / COLS; }
    static __device__ __forceinline__ int col() { return threadIdx.x % COLS; }

    // `src` is the first tile's first element.
    __device__ __forceinline__ MovingTile(const float* src, int ld)
        : ld(ld), from(src + row() * static_cast<Offset>(ld) + col())
    {
    }

    // Starts the loads. Where the matrix, with `rows` and `cols` from the tile on, has ended: zeros. WHOLE: it has not.
    template <bool WHOLE>
    __device__ __forceinline__ void fetch(float (&held)[COUNT], int rows, int cols) const
    {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            const int r = row() + i * STEP, c = col();
            const bool exists = (ROWS % STEP == 0 || r < ROWS) && (WHOLE || (r < rows && c < cols));
            held[i] = exists ? from[i * STEP * static_cast<Offset>(ld)] : 0.0f;
        }
    }

    __device__ __forceinline__ void put(float (*dst)[COLS], const float (&held)[COUNT]) const
    {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            const int r = row() + i * STEP;
            if (ROWS % STEP == 0 || r < ROWS) dst[r][col()] = held[i];
        }
    }
};

// A block's tiles of one step along k. From their first elements on there are `rows` rows and `cols` columns of C.
template <int BM, int BN, int BK, int THREADS>
struct MovingTiles {
    using TileA = MovingTile<BM, BK, THREADS>;
    using TileB = MovingTile<BK, BN, THREADS>;

    TileA a;
    TileB b;
    const int rows, cols;

    __device__ __forceinline__ MovingTiles(const float* A, int lda, const float* B, int ldb, int rows, int cols)
        : a(A, lda), b(B, ldb), rows(rows), cols(cols)
    {
    }

    // Into shared memory, and on to the next step. `left` steps of k are left. The loads are on their way while the block
    // waits for its last threads to be done with the tiles before.
    __device__ __forceinline__ void load(float (*As)[BK], float (*Bs)[BN], int left)
    {
        float a_held[TileA::COUNT], b_held[TileB::COUNT];
        // The same for all threads, and true but for the last blocks of a row or column and the last step.
        if (rows >= BM && cols >= BN && left >= BK) {
            a.template fetch<true>(a_held, BM, BK);
            b.template fetch<true>(b_held, BK, BN);
        } else {
            a.template fetch<false>(a_held, rows, left);
            b.template fetch<false>(b_held, left, cols);
        }
        a.from += BK;
        b.from += BK * static_cast<Offset>(b.ld);
        __syncthreads();
        a.put(As, a_held);
        b.put(Bs, b_held);
        __syncthreads();
    }
};
