// Rows and columns of a product that are computed apart, by multiply-adds in float32: one line of A or B with all lines
// of the other operand. A warp computes 32 results at a time, each of them one chain in the order of k, so that infinities
// and sums near the largest float32 are those of a loop over k. Warps of the producer do it while others multiply tiles.
#pragma once

#include "epilogue.cuh"
#include "turns.cuh"

constexpr int ODD_UNIT = 32;  // lines of the other operand, one a lane

// The dot product of `line` and this lane's line of X, of which `left` exist. Element k of `line` is line[k * step];
// element k of line i lies at X[i * ld + k], or at X[k * ld + i] with ACROSS.
template <bool ACROSS>
__device__ __forceinline__ float sum_in_order(
    const float* line, Offset step, const float* X, int ld, int left, int depth)
{
    const int lane = threadIdx.x % 32;
    float sum = 0.0f;
    if (lane < left) {
        X += ACROSS ? lane : lane * static_cast<Offset>(ld);
        const Offset next = ACROSS ? ld : 1;
#pragma unroll 8
        for (int k = 0; k < depth; ++k) sum += line[k * step] * X[k * next];
    }
    return sum;
}

// Odd lines of a product, in units that warps take in turn, until none is left. An element whose row and column are both
// odd belongs to the row.
template <bool TRANS_A, bool TRANS_B, class Product, class Slice>
__device__ __forceinline__ void store_odd_lines(const Product& parts, const Slice& it, Turns turns)
{
    const unsigned across = ceil_div(it.N, ODD_UNIT), down = ceil_div(it.M, ODD_UNIT);
    const unsigned row_units = parts.a.verdicts.odd_lines() * across;
    const unsigned units = row_units + parts.b.verdicts.odd_lines() * down;
    if (units == 0) return;
    const int lane = threadIdx.x % 32;
#pragma unroll 1
    for (;;) {
        const unsigned taken = lane == 0 ? turns.take(Turns::LINES) : 0;
        const unsigned unit = __shfl_sync(0xffffffff, taken, 0);
        if (unit >= units) return;
        if (unit < row_units) {
            const Offset row = parts.a.verdicts.odd_line(unit / across), ld_a = it.lda;
            const int first = static_cast<int>(unit % across) * ODD_UNIT, left = it.N - first;
            const float sum = sum_in_order<!TRANS_B>(
                it.A + (TRANS_A ? row : row * ld_a), TRANS_A ? ld_a : 1,
                it.B + (TRANS_B ? first * static_cast<Offset>(it.ldb) : first), it.ldb, left, it.depth);
            if (lane < left) store_element(it.C + row * it.ldc + first + lane, it.alpha, sum, it.beta);
        } else {
            const unsigned of_b = unit - row_units;
            const Offset col = parts.b.verdicts.odd_line(of_b / down), ld_b = it.ldb;
            const int first = static_cast<int>(of_b % down) * ODD_UNIT, left = it.M - first;
            const float sum = sum_in_order<TRANS_A>(
                it.B + (TRANS_B ? col * ld_b : col), TRANS_B ? 1 : ld_b,
                it.A + (TRANS_A ? first : first * static_cast<Offset>(it.lda)), it.lda, left, it.depth);
            if (lane < left && !parts.a.verdicts.is_odd(first + lane))
                store_element(it.C + (first + lane) * static_cast<Offset>(it.ldc) + col, it.alpha, sum, it.beta);
        }
    }
}
