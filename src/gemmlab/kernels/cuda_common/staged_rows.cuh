// Results of warpgroup products on their way to C, through shared memory where C cannot be written in pairs.
//
// A thread has two neighbours of a row, and a warp eight rows at a time. If rows begin off 8 bytes, pairs must be stored
// one by one, and each 32 bytes of C are written in four parts, across two sectors. So a warp puts eight rows of 32
// columns (16 of narrow tiles) into shared memory and stores them row by row, 128 bytes at a time.
#pragma once

#include "epilogue.cuh"
#include "left_out.cuh"

constexpr int STAGED_ROWS = 8, STAGED_WARPS = 8;  // two warpgroups

// Columns and bytes for tiles with COUNT results a thread.
constexpr int staged_cols(int count) { return count < 64 ? 16 : 32; }
constexpr int staged_bytes(int count) { return STAGED_WARPS * STAGED_ROWS * staged_cols(count) * 4; }

// The place of a consumer's results in a tile: of warpgroup 1 or 2 of the block, which has 64 rows.
struct PartsPlace {
    int row, col;  // of the first result; wgmma.cuh says where the others are

    __device__ __forceinline__ PartsPlace()
        : row((threadIdx.x / 128 - 1) * 64 + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4),
          col(threadIdx.x % 4 * 2)
    {
    }
};

// The number of the thread, of which the compiler knows nothing: what follows from it is not kept in registers while
// products are added.
__device__ __forceinline__ unsigned fresh_thread()
{
    unsigned thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    return thread;
}

// C = alpha * sums + beta * C for the `rows` and `cols` of a tile that exist and are not left out, row by row. `c` is the
// tile's first element, `staged` are staged_bytes(COUNT) of shared memory.
//
// Eight columns are a group. In shared memory, groups of a row change places so that no banks conflict:
//
//     32 columns: group g of row r lies at g ^ r % 4        16 columns: at g ^ r / 2 % 2
template <int COUNT>
__device__ __forceinline__ void store_by_rows(
    float* c, int ldc, float alpha, const float (&sums)[COUNT], float beta, float* staged, int rows, int cols,
    LeftOut left_out)
{
    constexpr int COLS = staged_cols(COUNT), EACH = COLS / 4;  // of eight rows and COLS columns, results of a thread
    constexpr int AT_ONCE = 32 / COLS, TURNS = STAGED_ROWS / AT_ONCE;  // rows that a warp stores at once
    const int thread = fresh_thread(), lane = thread % 32, warp = thread / 32 - 4;  // of both warpgroups
    float* const mine = staged + warp * STAGED_ROWS * COLS;
    const auto at = [&](int row, int group) {
        return mine + row * COLS + (group ^ (COLS == 32 ? row % 4 : row / 2 % 2)) * 8;
    };
    // A bit for each of the warp's 16 rows, and lane l's bits are those of columns 32 l .. 32 l + 31.
    const unsigned no_rows = left_out.some() ? left_out.rows[warp / 2] >> warp % 2 * 16 : 0;
    const unsigned no_cols = left_out.some() && lane < COUNT / 16 ? left_out.cols[lane] : 0;
    // Short code, since it is fetched for few tiles: sums move down, so that the first are always stored. The eight upper
    // rows of COLS columns come first, then the lower ones.
    float left[COUNT];
#pragma unroll
    for (int i = 0; i < COUNT; ++i) left[i] = sums[i / (2 * EACH) * 2 * EACH + i % EACH / 2 * 4 + i / EACH % 2 * 2 + i % 2];
#pragma unroll 1
    for (int part = 0; part < COUNT / EACH; ++part) {
        const int row = warp * 16 + part % 2 * 8 + lane / COLS, col = part / 2 * COLS + lane % COLS;
        __syncwarp();  // the rows before have been read
#pragma unroll
        for (int i = 0; i < EACH; i += 2)
            *reinterpret_cast<float2*>(at(lane / 4, i / 2) + lane % 4 * 2) = make_float2(left[i], left[i + 1]);
        __syncwarp();
        const bool no_col = left_out.some() && __shfl_sync(0xffffffff, no_cols, col / 32) >> col % 32 & 1;
        float old[TURNS];
        bool stored[TURNS];
#pragma unroll
        for (int i = 0; i < TURNS; ++i) {
            stored[i] = row + i * AT_ONCE < rows && col < cols && !no_col && !(no_rows >> (row + i * AT_ONCE) % 16 & 1);
            old[i] = stored[i] && beta != 0.0f ? c[(row + i * AT_ONCE) * static_cast<Offset>(ldc) + col] : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < TURNS; ++i) {
            float result = alpha * at(i * AT_ONCE + lane / COLS, lane % COLS / 8)[lane % 8];
            if (beta != 0.0f) result += beta * old[i];
            if (stored[i]) c[(row + i * AT_ONCE) * static_cast<Offset>(ldc) + col] = result;
        }
#pragma unroll
        for (int i = 0; i + EACH < COUNT; ++i) left[i] = left[i + EACH];
    }
}

// C = alpha * sums + beta * C for the part of a tile that exists and is not left out. `c` is its first element.
template <int COUNT, class Tile>
__device__ __forceinline__ void store_products(
    float* c, int ldc, const Tile& tile, PartsPlace place, float alpha, const float (&sums)[COUNT], float beta,
    float* staged, LeftOut left_out)
{
    constexpr int ROWS = 128, COLS = 2 * COUNT;
    const bool pairs = reinterpret_cast<unsigned long long>(c) % 8 == 0 && ldc % 2 == 0;
    if (!pairs || beta != 0.0f || tile.rows < ROWS || tile.cols < COLS) {
        store_by_rows(c, ldc, alpha, sums, beta, staged, tile.rows, tile.cols, left_out);
        return;
    }
    c += place.row * static_cast<Offset>(ldc) + place.col;
    const auto at = [&](int i) { return c + i % 4 / 2 * 8 * static_cast<Offset>(ldc) + i / 4 * 8; };
    if (!left_out.some()) {
#pragma unroll
        for (int i = 0; i < COUNT; i += 2)
            *reinterpret_cast<float2*>(at(i)) = make_float2(alpha * sums[i], alpha * sums[i + 1]);
        return;
    }
    // The bits of this thread's columns, in each of its two rows: column 8 i is bit 8 i % 32 of word i / 4.
    unsigned without[2][COLS / 32];
    const unsigned rows = left_out.rows[place.row / 32] >> place.row % 32;
#pragma unroll
    for (int i = 0; i < COLS / 32; ++i) {
        const unsigned cols = left_out.cols[i] >> place.col;
        without[0][i] = rows & 1 ? ~0u : cols;
        without[1][i] = rows >> 8 & 1 ? ~0u : cols;
    }
#pragma unroll
    for (int i = 0; i < COUNT; i += 2) {
        const unsigned out = without[i % 4 / 2][i / 16] >> i / 4 % 4 * 8 & 3;
        if (out == 0) *reinterpret_cast<float2*>(at(i)) = make_float2(alpha * sums[i], alpha * sums[i + 1]);
        if (out == 2) *at(i) = alpha * sums[i];  // the other of its pair is left out
        if (out == 1) at(i)[1] = alpha * sums[i + 1];
    }
}
