// A scale and a verdict for each line (row of A, column of B) over all of k, for halves that are made in registers.
//
// A launch before the product finds them. A line's scale is a power of two that brings its largest element to
// 2^14 .. 2^15. Verdicts are those of verdicts.cuh, with all of k in the place of 128 elements.
#pragma once

#include "epilogue.cuh"
#include "float_parts.cuh"
#include "mma_parts.cuh"
#include "tf32_tile.cuh"

constexpr int LINES_OF_BLOCK = 32, LINE_WARPS = 8;  // of a block that looks at lines

struct Line {
    float down;  // what its elements are multiplied by
    unsigned verdict;

    // The inverse of `down`.
    __device__ __forceinline__ float up() const { return __uint_as_float((254u << 23) - __float_as_uint(down)); }
};

// What the threads of a block find out together about their lines.
struct LineFacts {
    unsigned largest[LINES_OF_BLOCK], least[LINES_OF_BLOCK];  // magnitudes; the least that is not zero, minus 1
    unsigned zeros[LINES_OF_BLOCK], small[LINES_OF_BLOCK];    // numbers of elements
    unsigned usual[LINES_OF_BLOCK];                           // of those known to be at least 2^-12 of the largest

    // Whether the first pass did not decide if a line is SMALL.
    __device__ __forceinline__ bool is_open(int line, unsigned depth) const
    {
        return largest[line] && usual[line] < depth - depth / 4;
    }
};

// Counts elements that are at least 2^-12 of the largest, before that is known: those of at least 2^-10 of a reference.
// An element above 4 times the reference replaces it, and the count begins anew. So it may be too low.
struct UsualCount {
    unsigned top = 0, limit = 0, count = 0;

    __device__ __forceinline__ void add(unsigned size)
    {
        if (size > top) {
            top = size + (2u << 23);
            limit = size - min(size, 10u << 23);
            count = 0;
        }
        count += size >= limit;
    }
    __device__ __forceinline__ unsigned with_largest(unsigned largest) const { return top >= largest ? count : 0; }
};

// Looks at lines `first` .. `first` + 31 of `count`. Element (line, k) lies at X[line * ld + k], or at X[k * ld + line]
// with ACROSS.
template <bool ACROSS>
__device__ __forceinline__ void look_at_lines(
    const float* X, int ld, int first, int count, int depth, Line* lines, LineFacts& facts)
{
    // A warp has four lines, and its lanes are adjacent along k; with ACROSS it has all lines, one a lane.
    constexpr int OWN = ACROSS ? 1 : LINES_OF_BLOCK / LINE_WARPS, STRIDE = ACROSS ? LINE_WARPS : 32;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const auto line_of = [&](int i) { return ACROSS ? lane : OWN * warp + i; };
    const auto for_each = [&](auto look) {
#pragma unroll 4
        for (int k = ACROSS ? warp : lane; k < depth; k += STRIDE)
#pragma unroll
            for (int i = 0; i < OWN; ++i) {
                const int line = first + line_of(i);
                if (line < count) look(i, magnitude(X[ACROSS ? k * static_cast<Offset>(ld) + line
                                                             : line * static_cast<Offset>(ld) + k]));
            }
    };
    if (threadIdx.x < LINES_OF_BLOCK) {
        facts.largest[threadIdx.x] = facts.zeros[threadIdx.x] = facts.small[threadIdx.x] = facts.usual[threadIdx.x] = 0;
        facts.least[threadIdx.x] = 0xffffffff;
    }
    __syncthreads();

    unsigned largest[OWN], least[OWN], zeros[OWN];
    UsualCount usual[OWN];
#pragma unroll
    for (int i = 0; i < OWN; ++i) largest[i] = zeros[i] = 0, least[i] = 0xffffffff;
    for_each([&](int i, unsigned size) {
        largest[i] = max(largest[i], size);
        least[i] = min(least[i], size - 1);  // of a zero, the largest number
        zeros[i] += size == 0;
        usual[i].add(size);
    });
#pragma unroll
    for (int i = 0; i < OWN; ++i) {
        atomicMax(&facts.largest[line_of(i)], largest[i]);
        atomicMin(&facts.least[line_of(i)], least[i]);
        atomicAdd(&facts.zeros[line_of(i)], zeros[i]);
    }
    __syncthreads();

#pragma unroll
    for (int i = 0; i < OWN; ++i)
        atomicAdd(&facts.usual[line_of(i)], usual[i].with_largest(facts.largest[line_of(i)]));
    __syncthreads();

    if (__syncthreads_or(facts.is_open(lane, depth))) {
        unsigned limit[OWN], small[OWN] = {};
#pragma unroll
        for (int i = 0; i < OWN; ++i) {
            const unsigned most = facts.largest[line_of(i)];
            limit[i] = most - min(most, 12u << 23);
        }
        for_each([&](int i, unsigned size) { small[i] += size < limit[i]; });
#pragma unroll
        for (int i = 0; i < OWN; ++i) atomicAdd(&facts.small[line_of(i)], small[i]);
        __syncthreads();
    }

    if (threadIdx.x < LINES_OF_BLOCK && first + lane < count) {
        const unsigned most = facts.largest[lane], exponent = most >> 23, all = depth;
        unsigned verdict = 0;
        if (most && (exponent < LEAST_EXPONENT || exponent > MOST_EXPONENT)) verdict |= UNFIT;
        if (most && exponent - (facts.least[lane] >> 23) > 27) verdict |= WIDE;
        if (facts.small[lane] > all / 4) verdict |= SMALL;
        if (most && all - facts.zeros[lane] < ceil_div(all, 4u)) verdict |= THIN;
        lines[first + lane] = {scale_for<TwoHalves::TOP>(most).down, verdict};
    }
}

// The lines of a product, M of A and N of B.
struct ScaledLines {
    Line* lines;
    int M, N;

    // Blocks that look at them: those of A's lines, then those of B's.
    template <bool TRANS_A, bool TRANS_B>
    __device__ __forceinline__ void look(
        const float* A, int lda, const float* B, int ldb, int depth, LineFacts& facts) const
    {
        const int block = blockIdx.x, of_a = static_cast<int>(ceil_div(M, LINES_OF_BLOCK));
        if (block < of_a)
            look_at_lines<TRANS_A>(A, lda, block * LINES_OF_BLOCK, M, depth, lines, facts);
        else
            look_at_lines<!TRANS_B>(B, ldb, (block - of_a) * LINES_OF_BLOCK, N, depth, lines + M, facts);
    }

    // Whether halves suit the tile that begins there. All threads of a block ask together.
    template <int BM, int BN>
    __device__ __forceinline__ bool suit(int row, int col) const
    {
        unsigned verdict = 0;
        for (int i = threadIdx.x; i < BM + BN; i += blockDim.x) {
            const int line = i < BM ? row + i : col + i - BM;
            if (line < (i < BM ? M : N)) verdict |= lines[i < BM ? line : M + line].verdict;
        }
        unsigned joined = 0;
        if (__syncthreads_or(verdict & (UNFIT | THIN))) joined |= UNFIT;
        if (__syncthreads_or(verdict & WIDE)) joined |= WIDE;
        if (__syncthreads_or(verdict & SMALL)) joined |= SMALL;
        return halves_suit(joined);
    }

    // The scales of a warp's strips, which begin at a row of A, or at a column of B.
    template <class Scale, int STRIPS>
    __device__ __forceinline__ void load_of_a(Scale (&scales)[STRIPS], int row) const
    {
        load(scales, lines, row, M);
    }
    template <class Scale, int STRIPS>
    __device__ __forceinline__ void load_of_b(Scale (&scales)[STRIPS], int col) const
    {
        load(scales, lines + M, col, N);
    }

    // Undoes the scales of the sums of a warp.
    template <int STRIPS, int EIGHTHS>
    __device__ __forceinline__ void undo(float (&sums)[STRIPS][EIGHTHS][4], int row, int col) const
    {
        const int lane = threadIdx.x % 32;
        float of_b[EIGHTHS][2];
#pragma unroll
        for (int j = 0; j < EIGHTHS; ++j)
#pragma unroll
            for (int odd = 0; odd < 2; ++odd)
                of_b[j][odd] = line(lines + M, col + dealt(8 * j + 2 * (lane % 4) + odd), N).up();
#pragma unroll
        for (int i = 0; i < STRIPS; ++i)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const float of_a = line(lines, row + dealt(16 * i + 8 * half + lane / 4), M).up();
#pragma unroll
                for (int j = 0; j < EIGHTHS; ++j)
#pragma unroll
                    for (int odd = 0; odd < 2; ++odd) {
                        float& sum = sums[i][j][2 * half + odd];
                        sum = sum * of_a * of_b[j][odd];
                    }
            }
    }

private:
    // Lines that do not exist are zeros.
    static __device__ __forceinline__ Line line(const Line* lines, int at, int count)
    {
        return at < count ? lines[at] : Line{1.0f, 0};
    }

    template <class Scale, int STRIPS>
    static __device__ __forceinline__ void load(Scale (&scales)[STRIPS], const Line* lines, int first, int count)
    {
        const int lane = threadIdx.x % 32;
#pragma unroll
        for (int s = 0; s < STRIPS; ++s)
#pragma unroll
            for (int half = 0; half < 2; ++half)
                scales[s].of_line[half] = line(lines, first + dealt(16 * s + 8 * half + lane / 4), count).down;
    }
};
