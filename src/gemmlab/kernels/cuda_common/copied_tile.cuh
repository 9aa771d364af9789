// The tiles of an operand that a block multiplies one after the other, by cp.async into shared memory as they lie in
// global memory: 16 bytes at a time while they are whole and aligned, float by float otherwise.
//
// A tile has LINES lines (rows of op(A), columns of op(B)) and BK steps of k. In global memory k goes along its rows or
// across them. PLACE says where a row comes from and where its chunks of four floats go. A block copies the tiles here
// together; WarpTile (strip_tiles.cuh) is the same for a warp alone, which copies 16 bytes at the edges too.
#pragma once

#include "async_tile.cuh"
#include "four.cuh"
#include "tile.cuh"

constexpr bool ALONG_K = true;    // A as it is, B transposed
constexpr bool ACROSS_K = false;  // A transposed, B as it is

// A tile of ROWS x COLS words, in shared memory as in global memory.
template <int ROWS, int COLS, bool LIES>
struct LyingTile {
    static constexpr int LINES = LIES == ALONG_K ? ROWS : COLS;
    static constexpr int BK = LIES == ALONG_K ? COLS : ROWS;

    // Words in global memory to what lies `k` steps further.
    static __device__ __forceinline__ Offset along_k(int k, int ld)
    {
        return LIES == ALONG_K ? k : k * static_cast<Offset>(ld);
    }
};

// The first line of a tile that would begin at `start`, moved back so that the tile ends within `extent`, if there is
// room for a whole tile. A tile that must stay `aligned` moves only if `extent` is a multiple of four.
template <int SIZE>
__device__ __forceinline__ int whole_tile(int start, int extent, bool aligned)
{
    const bool moves = extent >= SIZE && (!aligned || extent % 4 == 0);
    return moves ? min(start, extent - SIZE) : start;
}

// Rows and chunks in their own order.
struct InOrder {
    static constexpr int TURNS = 1;  // rows after which `chunk` repeats itself
    static __device__ __forceinline__ constexpr int row(int row) { return row; }  // it adds up over the bits of `row`
    static __device__ __forceinline__ constexpr int chunk(int, int chunk) { return chunk; }
};

template <int ROWS, int COLS, int LD, int THREADS, bool LIES, class PLACE = InOrder>
struct CopiedTile : LyingTile<ROWS, COLS, LIES> {
    using Lying = LyingTile<ROWS, COLS, LIES>;
    using Lying::BK, Lying::LINES;
    static constexpr int FLOATS = ROWS * LD;
    static constexpr int CHUNKS = COLS / 4;                    // of a row
    static constexpr int COUNT = ROWS * COLS / (4 * THREADS);  // chunks a thread
    static constexpr int PASS = THREADS / CHUNKS;              // rows that all threads copy at a time
    static_assert(COLS % 4 == 0 && LD % 4 == 0 && THREADS % CHUNKS == 0, "threads must share rows evenly");
    static_assert((PASS & (PASS - 1)) == 0 && ROWS % PASS == 0, "so must passes");

    // `src` is the first element of the first tile; `lines` and `depth` steps exist from there on.
    __device__ __forceinline__ CopiedTile(const float* src, int ld, int lines, int depth)
        : src(src), ld(ld), lines(lines), depth(depth),
          whole(lines >= LINES && rows_are_aligned(src, ld) ? depth / BK : 0)
    {
        rewind();
    }

    // Back to block 0.
    __device__ __forceinline__ void rewind()
    {
        from = src + PLACE::row(first_row()) * static_cast<Offset>(ld) + 4 * chunk();
    }

    // How many blocks of k are whole and aligned: all but at most the last one, or none.
    __device__ __forceinline__ int whole_blocks() const { return whole; }

    // Starts to copy block `block` of k to `dst`. Calls are for 0, 1, 2, ... in turn, and not beyond the end.
    __device__ __forceinline__ void copy(float* dst, int block)
    {
        if (block < whole) copy_whole(dst);
        else copy_edge(dst, block * BK);
    }

    // The same for the next of the whole blocks, without a branch.
    __device__ __forceinline__ void copy_whole(float* dst)
    {
        const int row = first_row();
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            // PASS is a power of two above `row`, so the source of row + i * PASS is the sum of their sources.
            const int to = PLACE::chunk(PASS % PLACE::TURNS == 0 ? row : row + i * PASS, chunk());
            copy_four_async(
                dst + (row + i * PASS) * LD + 4 * to, from + PLACE::row(i * PASS) * static_cast<Offset>(ld));
        }
        from += Lying::along_k(BK, ld);
    }

private:
    static __device__ __forceinline__ int first_row() { return threadIdx.x / CHUNKS; }  // [0, PASS)
    static __device__ __forceinline__ int chunk() { return threadIdx.x % CHUNKS; }      // [0, CHUNKS)

    // Zeros where the tile has ended.
    __device__ __forceinline__ void copy_edge(float* dst, int k) const
    {
        const float* tile = src + Lying::along_k(k, ld);
        const int rows = LIES == ALONG_K ? lines : depth - k, cols = LIES == ALONG_K ? depth - k : lines;
#pragma unroll 2
        for (int first = 0; first < ROWS * COLS; first += THREADS) {
            const int row = (first + threadIdx.x) / COLS, col = (first + threadIdx.x) % COLS;
            const bool exists = PLACE::row(row) < rows && col < cols;
            copy_one_async(
                dst + row * LD + 4 * PLACE::chunk(row, col / 4) + col % 4,
                tile + (exists ? PLACE::row(row) * static_cast<Offset>(ld) + col : 0), exists);
        }
    }

    const float* const src;
    const int ld, lines, depth;
    const int whole;
    const float* from;  // the thread's first chunk of the next whole one
};
