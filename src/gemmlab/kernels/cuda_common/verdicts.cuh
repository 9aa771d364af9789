// What is known of the rows of A and the columns of B of a product of 16-bit parts (split_operands.cuh): lines, for short.
//
// The first launch finds it out, every launch may read it. It lies in the tickets, which are zero before and after the
// product. A line that halves do not suit is odd. If odd lines are few, they are listed and do not decide for tiles:
//
//     tickets   [0]        blocks that are done
//     of A      [1], [2]   bits of all lines, without the odd ones and with them
//               [3]        number of odd lines           [4 ..]   the first of them
//               ..         [strip][2]                    bits of the lines of a strip, as above
//               ..         [strip][STRIP / 32]           which of its lines are odd
//     of B      the same
#pragma once

#include "parts.cuh"
#include "tile.cuh"

// Bits of a verdict: each says that some line has 128 elements that are not fit for parts of some kind.
constexpr unsigned UNFIT = 1;   // NaN, infinite, or so large or small that scales could overflow
constexpr unsigned WIDE = 2;    // an element that is not zero is below 2^-27 of the largest: two halves lose its bits
constexpr unsigned SMALL = 4;   // more than a quarter of the elements are below 2^-12 of the largest
constexpr unsigned THIN = 8;    // less than a quarter of the elements are not zero
constexpr unsigned WIDER = 16;  // an element that is not zero is below 2^-100 of the largest

// Whether two halves hold lines of these verdicts.
__device__ __forceinline__ bool halves_suit(unsigned verdict)
{
    return !(verdict & (UNFIT | THIN)) && (verdict & (WIDE | SMALL)) != (WIDE | SMALL);
}

// Whether three bfloat16 hold them.
__device__ __forceinline__ bool bfloats_suit(unsigned verdict) { return !(verdict & (UNFIT | WIDER)); }

constexpr unsigned MOST_ODD = 16;  // lines that are listed; with more of them, tiles are computed as their lines need

// Verdicts on one operand. `odd` says whether odd lines are among what is asked for.
template <int STRIP>
struct Verdicts {
    static constexpr unsigned MASKS = STRIP / 32, HEAD = 3 + MOST_ODD;

    unsigned strips;
    unsigned* words;

    __device__ __forceinline__ unsigned size() const { return HEAD + strips * (2 + MASKS); }

    __device__ __forceinline__ unsigned all(bool odd) const { return words[odd]; }
    __device__ __forceinline__ unsigned odd_lines() const { return words[2]; }
    __device__ __forceinline__ unsigned odd_line(unsigned index) const { return words[3 + index]; }
    __device__ __forceinline__ unsigned of_strip(unsigned strip, bool odd) const { return words[HEAD + 2 * strip + odd]; }

    __device__ __forceinline__ unsigned* masks(unsigned strip) const { return words + HEAD + 2 * strips + strip * MASKS; }
    __device__ __forceinline__ bool is_odd(unsigned line) const
    {
        return masks(line / STRIP)[line % STRIP / 32] >> line % 32 & 1;
    }
    __device__ __forceinline__ bool has_odd(unsigned strip) const
    {
        unsigned some = 0;
#pragma unroll
        for (unsigned i = 0; i < MASKS; ++i) some |= masks(strip)[i];
        return some;
    }

    // Adds the verdicts on lines of a strip, without odd ones and with them.
    __device__ __forceinline__ void add(unsigned strip, unsigned usual, unsigned every) const
    {
        if (usual) {
            atomicOr(words, usual);
            atomicOr(words + HEAD + 2 * strip, usual);
        }
        if (every) {
            atomicOr(words + 1, every);
            atomicOr(words + HEAD + 2 * strip + 1, every);
        }
    }

    // Lists an odd line, unless another block of k has done so.
    __device__ __forceinline__ void list(unsigned line) const
    {
        const unsigned bit = 1u << line % 32;
        if (atomicOr(masks(line / STRIP) + line % STRIP / 32, bit) & bit) return;
        const unsigned index = atomicAdd(words + 2, 1u);
        if (index < MOST_ODD) words[3 + index] = line;
    }
};
