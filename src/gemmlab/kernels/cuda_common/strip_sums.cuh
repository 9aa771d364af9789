// The sums of a block's warps: all have the same STRIP x 32 * LINES results, each for a share of k of its own. They are
// added by way of shared memory and stored, four neighbours in C a thread and turn.
#pragma once

#include "epilogue.cuh"
#include "strip_tiles.cuh"

template <int STRIP, int LINES, int WARPS, bool B_WIDE, bool WIDE_LIES>
struct StripSums {
    static constexpr int WORDS = STRIP * 32 * LINES;                          // of a warp
    static constexpr int QUADS = (WORDS / 4 + 32 * WARPS - 1) / (32 * WARPS);  // of a thread; some have one less

    // Stores the warp's sums in its shared memory, from `own` on.
    static __device__ __forceinline__ void leave(float* own, const float (&sums)[STRIP][LINES])
    {
        using Lane = LaneLines<LINES, WIDE_LIES>;
#pragma unroll
        for (int x = 0; x < STRIP; ++x) {
            if constexpr (Lane::APART == 1) {
                store_few(own + word(x, Lane::first()), sums[x]);
            } else {
#pragma unroll
                for (int i = 0; i < LINES; ++i) own[word(x, Lane::first() + i * Lane::APART)] = sums[x][i];
            }
        }
    }

    // This thread's quads, each the sum of all warps', added in pairs. Warps have left theirs `apart` words from each
    // other, from `shared` on.
    static __device__ __forceinline__ void add_warps(float (&whole)[4 * QUADS], const float* shared, int apart)
    {
#pragma unroll
        for (int i = 0; i < QUADS; ++i) {
            const Quad quad(i);
            float of_warp[WARPS][4] = {};
#pragma unroll
            for (int warp = 0; warp < WARPS; ++warp)
                if (quad.exists()) quad.load(of_warp[warp], shared + warp * apart);
#pragma unroll
            for (int next = 1; next < WARPS; next *= 2)
#pragma unroll
                for (int warp = 0; warp < WARPS; warp += 2 * next)
#pragma unroll
                    for (int j = 0; j < 4; ++j) of_warp[warp][j] += of_warp[warp + next][j];
#pragma unroll
            for (int j = 0; j < 4; ++j) whole[4 * i + j] = of_warp[0][j];
        }
    }

    // The thread's quad of a turn. `c` is the tile's first element of C, which has `strip_left` x `lines_left` from
    // there on.
    static __device__ __forceinline__ void store(
        float* c, int ldc, int strip_left, int lines_left, float alpha, int turn, float4 sums, float beta)
    {
        const Quad quad(turn);
        if (!quad.exists()) return;
        const bool vectors = rows_are_aligned(c, ldc);
        const int row = B_WIDE ? quad.x : quad.line, col = B_WIDE ? quad.line : quad.x;
        const int rows = B_WIDE ? strip_left : lines_left, cols = B_WIDE ? lines_left : strip_left;
        const float four[4] = {sums.x, sums.y, sums.z, sums.w};
        c += row * static_cast<Offset>(ldc) + col;
        if constexpr (B_WIDE || ALONG_STRIP) {
            if (row < rows) store_row(c, cols - col, vectors, alpha, four, beta);
        } else {
#pragma unroll
            for (int i = 0; i < 4; ++i)
                if (row + i < rows && col < cols)
                    store_element(c + i * static_cast<Offset>(ldc), alpha, four[i], beta);
        }
    }

private:
    // If A is wide, the rows of C go along the strip. Quads do so too, if STRIP is a multiple of four.
    static constexpr bool ALONG_STRIP = !B_WIDE && STRIP % 4 == 0;

    // Sums lie line by line, because that is how lanes write. Eight threads that read together have eight quads along
    // the lines, or the STRIP / 4 quads along the strip of some lines: quads of lines are moved, so that these are in
    // different banks too.
    static __device__ __forceinline__ int word(int x, int line)
    {
        constexpr int TURN = STRIP < 32 ? 32 / STRIP : 1;
        return x * 32 * LINES + ((line / 4 ^ x / 4 * TURN % 8) * 4 + line % 4);
    }

    // Four results side by side.
    struct Quad {
        int number, x, line;  // which of the tile, and its first result

        __device__ __forceinline__ explicit Quad(int turn)
            : number(turn * 32 * WARPS + threadIdx.x),
              x(ALONG_STRIP ? number % (STRIP / 4) * 4 : number / (8 * LINES)),
              line(ALONG_STRIP ? number / (STRIP / 4) : number % (8 * LINES) * 4)
        {
        }

        __device__ __forceinline__ bool exists() const { return number < WORDS / 4; }

        __device__ __forceinline__ void load(float (&four)[4], const float* sums) const
        {
            if constexpr (ALONG_STRIP) {
#pragma unroll
                for (int j = 0; j < 4; ++j) four[j] = sums[word(x + j, line)];
            } else {
                load_fragment(four, sums + word(x, line));
            }
        }
    };
};
