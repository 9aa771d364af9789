// The lines (rows of op(A), columns of op(B)) of one operand that a warp multiplies: how blocks of BK steps of k lie in
// shared memory, and which of the lines a lane has.
//
// LANES of the warp's 32 lanes lie side by side along the lines, each with COUNT of them. A lane reads four steps of k
// of its lines as float4:
//
//   ALONG_K    a line's k side by side    one LDS.128 has four steps of a line
//   ACROSS_K   lines side by side         one LDS.128 has four lines of a step
#pragma once

#include "fragment.cuh"
#include "lane_map.cuh"
#include "strip_tiles.cuh"

// Where the chunks of a line lie whose k are side by side. Lanes that are served at once read the same chunk of lines
// STEP apart; the swizzle puts these into different banks. All lines of a lane have the same swizzle.
template <int BK, bool LIES, int STEP, int LANES>
struct LinesApart {
    static constexpr int CHUNKS = BK / 4;
    static __device__ __forceinline__ constexpr int chunk(int row, int chunk)
    {
        if (LIES == ACROSS_K) return chunk;
        if (STEP == 1) return chunk ^ row % (LANES < 8 ? LANES : 8) / (8 / CHUNKS);  // 32 / BK rows fill the banks
        return chunk ^ row / STEP % (LANES < CHUNKS ? LANES : CHUNKS);
    }
};

// IN_FOURS says that a lane's lines must be groups of four neighbours, as for columns of C, which it stores as float4.
template <int COUNT_, int LANES, int BK, bool LIES, bool IN_FOURS>
struct WarpLines {
    static constexpr int COUNT = COUNT_, LINES = COUNT * LANES, FLOATS = LINES * BK;
    static constexpr bool FOURS = IN_FOURS || LIES == ACROSS_K;
    using Place = LinesApart<BK, LIES, FOURS ? 4 : 1, LANES>;
    template <bool ONCE>
    using Tile =
        WarpTile<LIES == ALONG_K ? LINES : BK, LIES == ALONG_K ? BK : LINES, LIES, Place, ONCE>;

    // The i-th line of the lane at `place`, [0, LANES).
    static __device__ __forceinline__ int line(int place, int i)
    {
        return FOURS ? i / 4 * 4 * LANES + 4 * place + i % 4 : i * LANES + place;
    }

    // Starts to copy LINES lines from `first` on, of `extent`, and BK steps from `k` on, of which `depth` exist.
    template <bool ONCE>
    static __device__ __forceinline__ void
    copy(float* dst, const float* from, int ld, int first, int extent, int k, int depth)
    {
        const Offset row = LIES == ALONG_K ? first : k;
        const int col = LIES == ALONG_K ? k : first;
        Tile<ONCE>(from + row * ld + col, ld, extent - first).copy(dst, depth);
    }

    // The lane's lines in steps 4 * quad .. 4 * quad + 3 of a block of k.
    static __device__ __forceinline__ void load(float (&frag)[4][COUNT], const float* tile, int place, int quad)
    {
        if constexpr (LIES == ALONG_K) {
            const float* const chunk = tile + line(place, 0) * BK + 4 * Place::chunk(line(place, 0), quad);
#pragma unroll
            for (int i = 0; i < COUNT; ++i) {
                float four[4];
                load_fragment(four, chunk + line(0, i) * BK);
#pragma unroll
                for (int k = 0; k < 4; ++k) frag[k][i] = four[k];
            }
        } else {
#pragma unroll
            for (int k = 0; k < 4; ++k)
#pragma unroll
                for (int i = 0; i < COUNT; i += 4) {
                    float four[4];
                    load_fragment(four, tile + (4 * quad + k) * LINES + line(place, i));
#pragma unroll
                    for (int j = 0; j < 4; ++j) frag[k][i + j] = four[j];
                }
        }
    }
};

// Where this lane is among LANES_M x LANES_N: in z-order if the warp is 4 x 8 or 8 x 4 lanes, so that 16 of them are
// served at once.
template <int LANES_M, int LANES_N>
__device__ __forceinline__ LanePlace place_of_lane()
{
    const int lane = threadIdx.x % 32;
    if constexpr (LANES_M * LANES_N == 32 && LANES_M >= 4 && LANES_N >= 4) {
        const LanePlace floats = lane_place<Z_ORDER, LANES_M, LANES_N>();
        return {floats.row / 4, floats.col / 4};
    } else {
        return {lane / LANES_N, lane % LANES_N};
    }
}

template <bool FIRST, class X, class Y>
struct ChosenOf {
    using Type = X;
};
template <class X, class Y>
struct ChosenOf<false, X, Y> {
    using Type = Y;
};
template <bool FIRST, class X, class Y>
using Chosen = typename ChosenOf<FIRST, X, Y>::Type;

// C = alpha * sums + beta * C for a warp's tile. `c` is its first element; C has `rows` and `cols` from there on. Rows
// of C that are not aligned are turned in `patch`, which has 32 * Cols::COUNT words for the warp alone, so that
// adjacent lanes store adjacent columns.
template <class Rows, class Cols>
__device__ __forceinline__ void store_warp_lines(
    float* c, int ldc, int rows, int cols, LanePlace place, float alpha,
    const float (&sums)[Rows::COUNT][Cols::COUNT], float beta, float* patch)
{
    if (rows_are_aligned(c, ldc)) {
#pragma unroll
        for (int i = 0; i < Rows::COUNT; ++i) {
            const int row = Rows::line(place.row, i);
            if (row >= rows) continue;
#pragma unroll
            for (int j = 0; j < Cols::COUNT; j += 4) {
                const int col = Cols::line(place.col, j);
                const float four[4] = {sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]};
                store_row(c + row * static_cast<Offset>(ldc) + col, cols - col, true, alpha, four, beta);
            }
        }
        return;
    }
    constexpr int LANES_ROWS = Rows::LINES / Rows::COUNT;
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < Rows::COUNT; ++i) {
        __syncwarp();  // the patch has been read
#pragma unroll
        for (int j = 0; j < Cols::COUNT; j += 4)
            *reinterpret_cast<float4*>(patch + place.row * Cols::LINES + Cols::line(place.col, j)) =
                make_float4(sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]);
        __syncwarp();
#pragma unroll
        for (int at = 0; at < LANES_ROWS * Cols::LINES; at += 32) {
            const int row = Rows::line((at + lane) / Cols::LINES, i), col = (at + lane) % Cols::LINES;
            if (row < rows && col < cols)
                store_element(c + row * static_cast<Offset>(ldc) + col, alpha, patch[at + lane], beta);
        }
    }
    __syncwarp();
}
