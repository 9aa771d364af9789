// Rows and columns of a product that are computed apart, by multiply-adds in float32: one line of A or B with all lines
// of the other operand. Reading that operand takes the time.
#pragma once

#include "epilogue.cuh"

constexpr int ODD_THREADS = 128;
constexpr int ODD_UNIT = 32;  // lines of the other operand that a block has

// Sums of `line` with 32 lines of X, of which `left` exist; thread t < 32 gets the sum of line t. Element k of the line is
// line[k * step]; element k of line i lies at X[i * ld + k], or at X[k * ld + i] with ACROSS.
template <bool ACROSS>
__device__ __forceinline__ float sum_lines(
    const float* line, Offset step, const float* X, int ld, int left, int depth, float (*shared)[ODD_UNIT])
{
    constexpr int WARPS = ODD_THREADS / 32, EACH = ODD_UNIT / WARPS;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if constexpr (ACROSS) {  // a lane has a line, a warp every fourth k
        float sum = 0.0f;
        if (lane < left)
#pragma unroll 8
            for (int k = warp; k < depth; k += WARPS) sum += line[k * step] * X[k * static_cast<Offset>(ld) + lane];
        shared[warp][lane] = sum;
    } else {  // a warp has 8 lines, a lane every 32nd k
        float sums[EACH] = {};
#pragma unroll 2
        for (int k = lane; k < depth; k += 32) {
            const float one = line[k * step];
#pragma unroll
            for (int i = 0; i < EACH; ++i) {
                const int row = EACH * warp + i;
                if (row < left) sums[i] += one * X[row * static_cast<Offset>(ld) + k];
            }
        }
#pragma unroll
        for (int i = 0; i < EACH; ++i)
#pragma unroll
            for (int apart = 16; apart > 0; apart /= 2) sums[i] += __shfl_xor_sync(0xffffffff, sums[i], apart);
        if (lane == 0)
#pragma unroll
            for (int i = 0; i < EACH; ++i) shared[0][EACH * warp + i] = sums[i];
    }
    __syncthreads();
    const float sum = ACROSS ? (shared[0][lane] + shared[1][lane]) + (shared[2][lane] + shared[3][lane]) : shared[0][lane];
    __syncthreads();
    return sum;
}

// All odd lines of a product, in units of 32 results that blocks take in turn. An element whose row and column are both
// odd belongs to the row.
template <bool TRANS_A, bool TRANS_B, class Product, class Slice>
__device__ __forceinline__ void store_odd_lines(const Product& parts, const Slice& it, char* memory)
{
    float(*const shared)[ODD_UNIT] = reinterpret_cast<float(*)[ODD_UNIT]>(memory);
    const unsigned across = ceil_div(it.N, ODD_UNIT), down = ceil_div(it.M, ODD_UNIT);
    const unsigned row_units = parts.a.verdicts.odd_lines() * across;
    const unsigned units = row_units + parts.b.verdicts.odd_lines() * down;
    const int lane = threadIdx.x % 32;
    for (unsigned unit = blockIdx.x; unit < units; unit += gridDim.x) {
        const bool is_row = unit < row_units;
        if (is_row) {
            const Offset row = parts.a.verdicts.odd_line(unit / across), ld_a = it.lda;
            const int first = static_cast<int>(unit % across) * ODD_UNIT, left = it.N - first;
            const float sum = sum_lines<!TRANS_B>(
                it.A + (TRANS_A ? row : row * ld_a), TRANS_A ? ld_a : 1,
                it.B + (TRANS_B ? first * static_cast<Offset>(it.ldb) : first), it.ldb, left, it.depth, shared);
            if (threadIdx.x < 32 && lane < left)
                store_element(it.C + row * it.ldc + first + lane, it.alpha, sum, it.beta);
        } else {
            const unsigned of_b = unit - row_units;
            const Offset col = parts.b.verdicts.odd_line(of_b / down), ld_b = it.ldb;
            const int first = static_cast<int>(of_b % down) * ODD_UNIT, left = it.M - first;
            const float sum = sum_lines<TRANS_A>(
                it.B + (TRANS_B ? col * ld_b : col), TRANS_B ? 1 : ld_b,
                it.A + (TRANS_A ? first : first * static_cast<Offset>(it.lda)), it.lda, left, it.depth, shared);
            if (threadIdx.x < 32 && lane < left && !parts.a.verdicts.is_odd(first + lane))
                store_element(it.C + (first + lane) * static_cast<Offset>(it.ldc) + col, it.alpha, sum, it.beta);
        }
    }
}
