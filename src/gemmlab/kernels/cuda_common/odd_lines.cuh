// Rows and columns of a product that are computed apart, by multiply-adds in float32: one line of A or B with all lines
// of the other operand. A warp computes 32 results at a time, each of them one chain in the order of k, so that infinities
// and sums near the largest float32 are those of a loop over k. Warps of the producer do it while others multiply tiles.
#pragma once

#include "epilogue.cuh"
#include "turns.cuh"

constexpr int ODD_UNIT = 32;   // lines of the other operand, one a lane
constexpr int ODD_AHEAD = 16;  // elements that a lane reads before it multiplies them: the producer has few registers

// The elements of a line: element k lies at first[k * step].
struct LineView {
    const float* first;
    Offset step;
};

// The dot product of `line`, which is the same for all lanes, and this lane's line `other`.
__device__ __forceinline__ float sum_in_order(LineView line, LineView other, int depth)
{
    const int lane = threadIdx.x % 32;
    float sum = 0.0f;
#pragma unroll 1
    for (int k = 0; k < depth; k += 32) {
        const int left = depth - k;
        const float of_line = lane < left ? line.first[(k + lane) * line.step] : 0.0f;  // 32 of them, one a lane
#pragma unroll
        for (int half = 0; half < 32; half += ODD_AHEAD) {
            float of_other[ODD_AHEAD];
#pragma unroll
            for (int i = 0; i < ODD_AHEAD; ++i)
                if (half + i < left) of_other[i] = other.first[(k + half + i) * other.step];
            // Zeros behind the end would turn an infinity into a NaN, so there are no steps for them.
#pragma unroll
            for (int i = 0; i < ODD_AHEAD; ++i) {
                const float element = __shfl_sync(0xffffffff, of_line, half + i);
                if (half + i < left) sum += element * of_other[i];
            }
        }
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
    const auto row_of_a = [&](Offset row) {
        return TRANS_A ? LineView{it.A + row, it.lda} : LineView{it.A + row * it.lda, 1};
    };
    const auto column_of_b = [&](Offset col) {
        return TRANS_B ? LineView{it.B + col * it.ldb, 1} : LineView{it.B + col, it.ldb};
    };
    const int lane = threadIdx.x % 32;
    while (units) {
        const unsigned taken = lane == 0 ? turns.take(Turns::LINES) : 0;
        const unsigned unit = __shfl_sync(0xffffffff, taken, 0);
        if (unit >= units) return;
        const bool of_row = unit < row_units;
        const unsigned index = of_row ? unit : unit - row_units, each = of_row ? across : down;
        const int extent = of_row ? it.N : it.M, own = static_cast<int>(index % each) * ODD_UNIT + lane;
        const Offset odd = of_row ? parts.a.verdicts.odd_line(index / each) : parts.b.verdicts.odd_line(index / each);
        const Offset other = min(own, extent - 1);  // lanes without a line read the last one
        const LineView a_line = row_of_a(of_row ? odd : other), b_line = column_of_b(of_row ? other : odd);
        const float sum = sum_in_order(of_row ? a_line : b_line, of_row ? b_line : a_line, it.depth);
        if (own < extent && (of_row || !parts.a.verdicts.is_odd(own)))
            store_element(
                it.C + (of_row ? odd * it.ldc + own : own * static_cast<Offset>(it.ldc) + odd), it.alpha, sum, it.beta);
    }
}
