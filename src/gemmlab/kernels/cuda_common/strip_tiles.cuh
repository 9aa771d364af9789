// What a warp multiplies by itself: STRIP lines of one operand, the narrow one, with 32 * LINES lines of the other. Tiles
// of BK steps of k come by cp.async into shared memory of the warp's own, so no other warp has to be waited for.
//
//   wide     lines in global memory  x  k    ALONG_K: rows of k, chunks of four swizzled; lane l has lines l, l + 32, ..
//                                    k  x    ACROSS_K: rows of lines; lane l has lines l * LINES and on
//   narrow   either                          rows of k; each lane reads all of them
#pragma once

#include "copied_tile.cuh"
#include "fragment.cuh"

// Eight lanes are served at once. Where each reads a chunk of another line, lines take turns in the banks.
template <int BK, bool LIES>
struct LinesInTurn {
    static constexpr int CHUNKS = BK / 4 < 8 ? BK / 4 : 8;
    static constexpr int TURNS = LIES == ALONG_K ? 8 : 1;
    static __device__ __forceinline__ constexpr int row(int row) { return row; }
    static __device__ __forceinline__ constexpr int chunk(int row, int chunk)
    {
        return LIES == ALONG_K ? chunk ^ row % 8 / (8 / CHUNKS) : chunk;
    }
};

template <int LINES, int BK, bool LIES>
using WideTile = CopiedTile<
    LIES == ALONG_K ? 32 * LINES : BK, LIES == ALONG_K ? BK : 32 * LINES, LIES == ALONG_K ? BK : 32 * LINES, 32, LIES,
    LinesInTurn<BK, LIES>, OfWarp>;

// The first of the lane's lines, and how far the next one is.
template <int LINES, bool LIES>
struct LaneLines {
    static constexpr int APART = LIES == ALONG_K ? 32 : 1;
    static __device__ __forceinline__ int first() { return threadIdx.x % 32 * (LIES == ALONG_K ? 1 : LINES); }
};

// COUNT neighbours, 1, 2 or 4, in one instruction; `words` is a multiple of as many.
template <int COUNT>
__device__ __forceinline__ void load_few(float (&values)[COUNT], const float* words)
{
    static_assert(COUNT == 1 || COUNT == 2 || COUNT == 4, "as many as one instruction has");
    if constexpr (COUNT == 4) {
        load_fragment(values, words);
    } else if constexpr (COUNT == 2) {
        const float2 two = *reinterpret_cast<const float2*>(words);
        values[0] = two.x;
        values[1] = two.y;
    } else {
        values[0] = *words;
    }
}

template <int COUNT>
__device__ __forceinline__ void store_few(float* words, const float (&values)[COUNT])
{
    if constexpr (COUNT == 4) *reinterpret_cast<float4*>(words) = make_float4(values[0], values[1], values[2], values[3]);
    else if constexpr (COUNT == 2) *reinterpret_cast<float2*>(words) = make_float2(values[0], values[1]);
    else *words = values[0];
}

// The lane's lines of the wide tile in steps 4 * quad .. 4 * quad + 3.
template <int LINES, int BK, bool LIES>
__device__ __forceinline__ void load_wide(float (&wide)[4][LINES], const float* tile, int quad)
{
    const int line = LaneLines<LINES, LIES>::first();
    if constexpr (LIES == ALONG_K) {
        const float* chunk = tile + line * BK + 4 * LinesInTurn<BK, LIES>::chunk(line, quad);
#pragma unroll
        for (int i = 0; i < LINES; ++i) {
            float four[4];
            load_fragment(four, chunk + i * 32 * BK);  // 32 lines are whole turns
#pragma unroll
            for (int k = 0; k < 4; ++k) wide[k][i] = four[k];
        }
    } else {
#pragma unroll
        for (int k = 0; k < 4; ++k) load_few(wide[k], tile + (4 * quad + k) * 32 * LINES + line);
    }
}

// The narrow operand's tiles one after the other. `src` is element (line, k) = (0, 0) of the first; `lines` and `depth`
// exist from there on, and the others become zeros unread.
template <int STRIP, int BK, bool LIES>
struct NarrowTile {
    // Words from one line to the next. Chunks are copied without conflict where lines follow each other, and single words
    // of several lines where these begin 4 banks apart.
    static constexpr int LD = LIES == ALONG_K || STRIP == 1 ? BK : BK + 4;
    static constexpr int FLOATS = STRIP * LD;

    __device__ __forceinline__ NarrowTile(const float* src, int ld, int lines, int depth)
        : src(src), ld(ld), lines(lines), depth(depth), fours(LIES == ALONG_K && rows_are_aligned(src, ld))
    {
    }

    // Starts the next block of k on its way to `dst`.
    __device__ __forceinline__ void copy(float* dst)
    {
        if (fours) copy_fours(dst);
        else copy_singles(dst);
        src += LIES == ALONG_K ? BK : BK * static_cast<Offset>(ld);
        depth -= BK;
    }

private:
    __device__ __forceinline__ void copy_fours(float* dst) const
    {
        constexpr int CHUNKS = STRIP * BK / 4;
#pragma unroll
        for (int first = 0; first < CHUNKS; first += 32) {
            const int at = first + threadIdx.x % 32, line = at / (BK / 4), k = at % (BK / 4) * 4;
            const int cols = line < lines ? depth - k : 0;
            if (CHUNKS % 32 == 0 || at < CHUNKS)
                copy_four_async(dst + line * LD + k, src + (cols > 0 ? line * static_cast<Offset>(ld) + k : 0), cols);
        }
    }

    // Neighbouring lanes copy neighbours in global memory: steps of a line, or up to eight lines of a step.
    __device__ __forceinline__ void copy_singles(float* dst) const
    {
        constexpr int TOGETHER = LIES == ALONG_K ? 1 : STRIP % 8 == 0 ? 8 : STRIP % 4 == 0 ? 4 : STRIP % 2 == 0 ? 2 : 1;
        constexpr int STEPS = BK * TOGETHER;  // of TOGETHER lines
#pragma unroll 2
        for (int at = threadIdx.x % 32; at < STRIP * BK; at += 32) {
            const int line = at / STEPS * TOGETHER + at % TOGETHER, k = at % STEPS / TOGETHER;
            const bool exists = line < lines && k < depth;
            const Offset from = LIES == ALONG_K ? line * static_cast<Offset>(ld) + k : k * static_cast<Offset>(ld) + line;
            copy_one_async(dst + line * LD + k, src + (exists ? from : 0), exists);
        }
    }

    const float* src;
    const int ld, lines;
    int depth;
    const bool fours;
};
