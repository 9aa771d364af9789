// The sums of a block's warps, which have the same STRIP x 32 * LINES results, each for a share of k of its own: added by
// way of shared memory, and stored, four neighbours a thread.
#pragma once

#include "epilogue.cuh"
#include "strip_tiles.cuh"

// Where a warp's sum of strip line x and wide line `line` lies: line by line, because that is how lanes write. Threads
// read quads. Eight of them that are served together are eight neighbours along the lines, or the STRIP / 4 of some
// following lines; quads of lines are moved so that in both cases they are in different banks.
template <int STRIP, int LINES>
struct SumsPlace {
    static constexpr int WORDS = STRIP * 32 * LINES;
    static __device__ __forceinline__ int word(int x, int line)
    {
        constexpr int TURN = STRIP < 32 ? 32 / STRIP : 1;
        return x * 32 * LINES + ((line / 4 ^ x / 4 * TURN % 8) * 4 + line % 4);
    }
};

template <bool WIDE_LIES, int STRIP, int LINES>
__device__ __forceinline__ void leave_sums(float* own, const float (&sums)[STRIP][LINES])
{
    using Lane = LaneLines<LINES, WIDE_LIES>;
    using Place = SumsPlace<STRIP, LINES>;
#pragma unroll
    for (int x = 0; x < STRIP; ++x) {
        if constexpr (Lane::APART == 1) {
            store_few(own + Place::word(x, Lane::first()), sums[x]);
        } else {
#pragma unroll
            for (int i = 0; i < LINES; ++i) own[Place::word(x, Lane::first() + i * Lane::APART)] = sums[x][i];
        }
    }
}

// Four results of a tile: neighbours along the lines, or along the strip, where that is how C's rows go and there are
// four.
template <int STRIP, int LINES, bool C_ALONG_STRIP>
struct Quad {
    static constexpr bool ALONG_STRIP = C_ALONG_STRIP && STRIP % 4 == 0;
    static constexpr int COUNT = STRIP * 8 * LINES;  // of a tile
    int x, line;                                     // its first result: [0, STRIP), [0, 32 * LINES)

    __device__ __forceinline__ explicit Quad(unsigned number)
        : x(ALONG_STRIP ? number % (STRIP / 4) * 4 : number / (8 * LINES)),
          line(ALONG_STRIP ? number / (STRIP / 4) : number % (8 * LINES) * 4)
    {
    }

    // The sums of WARPS warps, a power of two, added in pairs. A warp's begin WORDS words after those before it.
    template <int WARPS, int WORDS>
    __device__ __forceinline__ void add_warps(float* four, const float* sums) const
    {
        using Place = SumsPlace<STRIP, LINES>;
        float of_warp[WARPS][4];
#pragma unroll
        for (int warp = 0; warp < WARPS; ++warp) {
            const float* own = sums + warp * WORDS;
            if constexpr (ALONG_STRIP) {
#pragma unroll
                for (int i = 0; i < 4; ++i) of_warp[warp][i] = own[Place::word(x + i, line)];
            } else {
                load_fragment(of_warp[warp], own + Place::word(x, line));
            }
        }
#pragma unroll
        for (int apart = 1; apart < WARPS; apart *= 2)
#pragma unroll
            for (int warp = 0; warp < WARPS; warp += 2 * apart)
#pragma unroll
                for (int i = 0; i < 4; ++i) of_warp[warp][i] += of_warp[warp + apart][i];
#pragma unroll
        for (int i = 0; i < 4; ++i) four[i] = of_warp[0][i];
    }

    // `c` is the tile's first element of C, which has `strip_lines` x `group_lines` of the tile.
    __device__ __forceinline__ void store(
        float* c, int ldc, int strip_lines, int group_lines, float alpha, const float (&four)[4], float beta) const
    {
        if constexpr (!C_ALONG_STRIP) {
            c += x * static_cast<Offset>(ldc) + line;
            if (x < strip_lines) store_row(c, group_lines - line, rows_are_aligned(c, ldc), alpha, four, beta);
        } else if constexpr (ALONG_STRIP) {
            c += line * static_cast<Offset>(ldc) + x;
            if (line < group_lines) store_row(c, strip_lines - x, rows_are_aligned(c, ldc), alpha, four, beta);
        } else {
            c += line * static_cast<Offset>(ldc) + x;
#pragma unroll
            for (int i = 0; i < 4; ++i)
                if (x < strip_lines && line + i < group_lines)
                    store_element(c + i * static_cast<Offset>(ldc), alpha, four[i], beta);
        }
    }
};
