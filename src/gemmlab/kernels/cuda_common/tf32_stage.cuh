// A stage of float32 operands in shared memory, as TF32, for products of warpgroups: 32 of k.
//
// wgmma reads TF32 from shared memory along k only. What is stored across k therefore goes in as the register operand,
// X; the other one, Y, lies in shared memory. Sums are X's rows by Y's rows:
//
//     layout     X                     Y                     sums are
//     nn         B, [k][n], across     A, [m][k]             C's transpose
//     nt         B, [n][k], along      A, [m][k]             C's transpose
//     tt         A, [k][m], across     B, [n][k]             C
//     tn         would need Y across k: such products are for mma.sync
//
// Shared memory of a stage in rows of 128 bytes, swizzled as wgmma.cuh says:
//
//     X across   [128 rows / 32][32 of k][32 rows]       X along    [128 rows][32 of k]
//     Y          [BY rows][32 of k]
#pragma once

#include "cluster.cuh"
#include "epilogue.cuh"
#include "wgmma.cuh"

constexpr int TF32_DEPTH = 32;  // of k in a stage
constexpr int TF32_ROWS = 128;  // of X in a tile: 64 of each of two warpgroups

template <int BY>
struct Tf32Stage {
    static constexpr int X_BYTES = TF32_ROWS * 128, Y_BYTES = BY * 128, BYTES = X_BYTES + Y_BYTES;

    SharedAddress x;

    __device__ __forceinline__ SharedAddress y() const { return x + X_BYTES; }
};

// Tiles of X by Y, in strips of GROUP along X: tiles that are computed at the same time share rows of both in L2.
// A block goes on with the tile that lies `gridDim.x` further. Blocks of a cluster have neighbouring tiles.
//
//     GROUP = 2           X ->
//                    0  1 |  6  7 | 12
//                    2  3 |  8  9 | 13
//                    4  5 | 10 11 | 14
template <int BY, int GROUP, class Blocks = OneBlock>
struct TileOfXY {
    int x, y;  // first rows of X and Y

    __device__ __forceinline__ TileOfXY(int rows_x, int rows_y)
        : across(ceil_div(rows_x, TF32_ROWS * Blocks::X_BLOCKS)), down(ceil_div(rows_y, BY * Blocks::Y_BLOCKS)),
          index(blockIdx.x / Blocks::BLOCKS)
    {
        place();
    }

    __device__ __forceinline__ bool exists() const { return index < down * across; }

    __device__ __forceinline__ void advance()
    {
        index += gridDim.x / Blocks::BLOCKS;
        place();
    }

private:
    unsigned across, down;
    unsigned index;

    __device__ __forceinline__ void place()
    {
        const unsigned per_group = down * min(across, static_cast<unsigned>(GROUP));
        const unsigned group = index / per_group, in_group = index % per_group;
        const unsigned width = max(min(across - min(across, group * GROUP), static_cast<unsigned>(GROUP)), 1u);
        x = static_cast<int>((group * GROUP + in_group % width) * Blocks::X_BLOCKS + Blocks::x()) * TF32_ROWS;
        y = static_cast<int>(in_group / width * Blocks::Y_BLOCKS + Blocks::y()) * BY;
    }
};

// A thread's part of X as the register operand of wgmma, and the place of its sums. Lane l reads two neighbouring rows,
// pair + 0 and 1, at k = l % 4 and l % 4 + 4 of each eight.
//
// X across: a row of 128 bytes is 32 rows of X at one k. The pairs of 16 lanes lie in units u, u ^ 4 (l / 8 decides)
// and their halves, so that the swizzled units u ^ k, u ^ 4 ^ k at four k are eight different ones: no conflicts.
//
// X along: lanes read row 2 (l / 4) first, or its neighbour from l / 4 = 4 on, so that the eight rows differ modulo 8.
template <bool X_ALONG>
struct Tf32Operand {
    static constexpr int FRAGMENTS = TF32_DEPTH / 8;

    int pair;    // first of the thread's two rows in the tile
    int first;   // 1 if the sums' first row is the second of the pair
    int column;  // of the first sum among rows of Y

    // `group` is the number of the warpgroup among those that multiply, 0 or 1.
    __device__ __forceinline__ explicit Tf32Operand(int group) : column(threadIdx.x % 4 * 2)
    {
        const int warp = threadIdx.x % 128 / 32, of_eight = threadIdx.x % 32 / 4;
        if constexpr (X_ALONG) {
            pair = group * 64 + warp * 16 + of_eight * 2;
            first = of_eight / 4;
        } else {
            const int unit = warp % 2 * 2 + of_eight / 4 + of_eight / 2 % 2 * 4;
            pair = group * 64 + warp / 2 * 32 + unit * 4 + of_eight % 2 * 2;
            first = 0;
        }
    }

    __device__ __forceinline__ void load(unsigned (&x)[FRAGMENTS][4], SharedAddress stage) const
    {
        const int k = threadIdx.x % 4;
        if constexpr (X_ALONG) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const int row = pair + (first ^ i);
                const SharedAddress at = stage + row * 128 + k * 4;
#pragma unroll
                for (int unit = 0; unit < 8; ++unit) {
                    unsigned& to = x[unit / 2][unit % 2 * 2 + i];
                    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(to) : "r"(at + ((unit ^ row % 8) << 4)));
                }
            }
        } else {
            const SharedAddress low = stage + pair / 32 * 4096 + k * 128 + ((pair % 32 / 4 ^ k) << 4) + pair % 4 * 4;
            const SharedAddress high = (low ^ 64) + 512;  // four of k further
#pragma unroll
            for (int i = 0; i < FRAGMENTS; ++i) {
                asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(x[i][0]), "=r"(x[i][1]) : "r"(low + i * 1024));
                asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(x[i][2]), "=r"(x[i][3]) : "r"(high + i * 1024));
            }
        }
    }
};

// Begins to add the products of a stage's X, in registers, and its Y to the sums; with `add` == false sums begin with it.
template <int COUNT, int FRAGMENTS>
__device__ __forceinline__ void multiply_stage(
    float (&sums)[COUNT], const unsigned (&x)[FRAGMENTS][4], SharedAddress y, bool add)
{
    begin_products();
#pragma unroll
    for (int i = 0; i < FRAGMENTS; ++i) multiply_tf32(sums, x[i], further(rows_of_128_bytes(y), 32 * i), add || i > 0);
    commit_products();
}

// C = alpha * sums + beta * C for the part of a tile that exists. C_BY_X says that the rows of X are rows of C.
template <bool C_BY_X, class Tile, class Operand, int COUNT>
__device__ __forceinline__ void store_sums(
    const Tile& tile, int M, int N, const Operand& place, float alpha, const float (&sums)[COUNT], float beta, float* C,
    int ldc)
{
    constexpr int BY = COUNT * 2, ROWS = C_BY_X ? TF32_ROWS : BY, COLS = C_BY_X ? BY : TF32_ROWS;
    const int first_row = C_BY_X ? tile.x : tile.y, first_col = C_BY_X ? tile.y : tile.x;
    const int rows = M - first_row, cols = N - first_col;  // of C from there on
    float* const c = C + first_row * static_cast<Offset>(ldc) + first_col;
    // Calls `store` for two neighbours in a row of C.
    const auto each_pair = [&](auto store) {
#pragma unroll
        for (int i = 0; i < COUNT; i += 4)
#pragma unroll
            for (int other = 0; other < 2; ++other)
                if constexpr (C_BY_X) {
                    const int row = place.pair + (place.first ^ other);
                    store(row, i * 2 + place.column, sums[i + 2 * other], sums[i + 2 * other + 1]);
                } else {
                    const float one = sums[i + other], two = sums[i + other + 2];
                    const int row = i * 2 + place.column + other;
                    store(row, place.pair, place.first ? two : one, place.first ? one : two);
                }
    };
    const bool pairs = reinterpret_cast<unsigned long long>(c) % 8 == 0 && ldc % 2 == 0;
    if (beta == 0.0f && pairs && rows >= ROWS && cols >= COLS)
        each_pair([&](int row, int col, float one, float two) {
            float* const at = c + row * static_cast<Offset>(ldc) + col;
            *reinterpret_cast<float2*>(at) = make_float2(alpha * one, alpha * two);
        });
    else
        each_pair([&](int row, int col, float one, float two) {
            float* const at = c + row * static_cast<Offset>(ldc) + col;
            if (row < rows && col < cols) store_element(at, alpha, one, beta);
            if (row < rows && col + 1 < cols) store_element(at + 1, alpha, two, beta);
        });
}
