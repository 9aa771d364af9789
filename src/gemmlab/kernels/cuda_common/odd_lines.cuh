// Rows and columns of a product that are computed apart, by multiply-adds in float32: one line of A or B with all lines
// of the other operand. Three warps of a warpgroup compute 8 results at a time; those of the producer do it while others
// multiply tiles.
#pragma once

#include "epilogue.cuh"
#include "turns.cuh"

constexpr int ODD_WARPS = 3;  // all of a warpgroup but the first
constexpr int ODD_UNIT = 8;   // lines of the other operand: four bytes each make a sector

// The results of a unit by warp, and the unit.
struct OddShare {
    float sums[ODD_WARPS][ODD_UNIT];
    unsigned unit;
};

__device__ __forceinline__ void meet_odd_team()
{
    asm volatile("bar.sync %0, %1;" ::"r"(3 + threadIdx.x / 128), "n"(32 * ODD_WARPS) : "memory");
}

// The dot products of `line` and 8 lines of X, of which `left` exist; lane l gets that of line l % 8. Element k of
// `line` is line[k * step]; element k of line i lies at X[i * ld + k], or at X[k * ld + i] with ACROSS.
template <bool ACROSS>
__device__ __forceinline__ float sum_lines(
    const float* line, Offset step, const float* X, int ld, int left, int depth, OddShare& share)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x % 128 / 32 - 1;
    if constexpr (ACROSS) {  // four lanes have a line
        float sum = 0.0f;
        if (lane % ODD_UNIT < left)
#pragma unroll 4
            for (int k = 4 * warp + lane / ODD_UNIT; k < depth; k += 4 * ODD_WARPS)
                sum += line[k * step] * X[k * static_cast<Offset>(ld) + lane % ODD_UNIT];
#pragma unroll
        for (int apart = ODD_UNIT; apart < 32; apart *= 2) sum += __shfl_xor_sync(0xffffffff, sum, apart);
        if (lane < ODD_UNIT) share.sums[warp][lane] = sum;
    } else {  // a lane has every 96th k; one line after the other, since the producer has few registers
#pragma unroll 1
        for (int i = 0; i < min(left, ODD_UNIT); ++i) {
            float sum = 0.0f;
#pragma unroll 4
            for (int k = 32 * warp + lane; k < depth; k += 32 * ODD_WARPS)
                sum += line[k * step] * X[i * static_cast<Offset>(ld) + k];
#pragma unroll
            for (int apart = 16; apart > 0; apart /= 2) sum += __shfl_xor_sync(0xffffffff, sum, apart);
            if (lane == 0) share.sums[warp][i] = sum;
        }
    }
    meet_odd_team();
    const int i = lane % ODD_UNIT;
    return share.sums[0][i] + share.sums[1][i] + share.sums[2][i];
}

// Odd lines of a product, in units of 8 results that teams take in turn, until none is left. An element whose row and
// column are both odd belongs to the row. Warps 1 to 3 of a warpgroup come here.
template <bool TRANS_A, bool TRANS_B, class Product, class Slice>
__device__ __forceinline__ void store_odd_lines(const Product& parts, const Slice& it, Turns turns, OddShare& share)
{
    const unsigned across = ceil_div(it.N, ODD_UNIT), down = ceil_div(it.M, ODD_UNIT);
    const unsigned row_units = parts.a.verdicts.odd_lines() * across;
    const unsigned units = row_units + parts.b.verdicts.odd_lines() * down;
    if (units == 0) return;
    const int thread = threadIdx.x % 128 - 32;
    const bool stores = thread < ODD_UNIT;
#pragma unroll 1
    for (;;) {
        if (thread == 0) share.unit = turns.take(Turns::LINES);
        meet_odd_team();
        const unsigned unit = share.unit;
        if (unit >= units) return;
        if (unit < row_units) {
            const Offset row = parts.a.verdicts.odd_line(unit / across), ld_a = it.lda;
            const int first = static_cast<int>(unit % across) * ODD_UNIT, left = it.N - first;
            const float sum = sum_lines<!TRANS_B>(
                it.A + (TRANS_A ? row : row * ld_a), TRANS_A ? ld_a : 1,
                it.B + (TRANS_B ? first * static_cast<Offset>(it.ldb) : first), it.ldb, left, it.depth, share);
            if (stores && thread < left) store_element(it.C + row * it.ldc + first + thread, it.alpha, sum, it.beta);
        } else {
            const unsigned of_b = unit - row_units;
            const Offset col = parts.b.verdicts.odd_line(of_b / down), ld_b = it.ldb;
            const int first = static_cast<int>(of_b % down) * ODD_UNIT, left = it.M - first;
            const float sum = sum_lines<TRANS_A>(
                it.B + (TRANS_B ? col * ld_b : col), TRANS_B ? 1 : ld_b,
                it.A + (TRANS_A ? first : first * static_cast<Offset>(it.lda)), it.lda, left, it.depth, share);
            if (stores && thread < left && !parts.a.verdicts.is_odd(first + thread))
                store_element(it.C + (first + thread) * static_cast<Offset>(it.ldc) + col, it.alpha, sum, it.beta);
        }
    }
}
