// Floats as sums of parts in registers, for mma.sync; and whether parts can hold them.
#pragma once

#include "tf32.cuh"

// Parts hold what is zero or has a magnitude from 2^-100 to 2^60: no part is subnormal, and no product overflows.
struct PartsRange {
    static constexpr unsigned LEAST = (127 - 100) << 23, MOST = (127 + 60) << 23;  // bits of these magnitudes

    unsigned least = 0xffffffff;  // the least magnitude that is not zero, minus 1
    unsigned most = 0;

    template <int STRIPS>
    __device__ __forceinline__ void watch(const Strip (&strips)[STRIPS])
    {
#pragma unroll
        for (int s = 0; s < STRIPS; ++s)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const unsigned size = strips[s].word[i] & 0x7fffffff;
                least = min(least, size - 1);  // of a zero, the largest number
                most = max(most, size);
            }
    }

    // NaN and infinities are beyond MOST.
    __device__ __forceinline__ bool holds() const { return least >= LEAST - 1 && most <= MOST; }
};

// A float as two TF32 numbers of 11 bits each: 23 bits of 24.
struct TwoTf32 {
    static constexpr int PARTS = 2;
    static constexpr int STEPS = 1;  // strips along k that a product takes: 8 of k
    using Words = Strip;             // a part of 16 lines, as mma.sync wants it

    static __device__ __forceinline__ void split(const Strip (&raw)[STEPS], Words (&parts)[PARTS])
    {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const unsigned word = raw[0].word[i], high = (word + 0x1000) & 0xffffe000;  // the nearest
            parts[0].word[i] = high;
            // Half a unit is added, and the tensor core cuts off what is behind.
            parts[1].word[i] = __float_as_uint(__uint_as_float(word) - __uint_as_float(high)) + 0x1000;
        }
    }

    // sums (16 x 8) += a (16 x 8) * columns 8 * half .. 8 * half + 7 of b.
    static __device__ __forceinline__ void multiply(float (&sums)[4], const Words& a, const Words& b, int half)
    {
        asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
            "{%0, %1, %2, %3};"
            : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
            : "r"(a.word[0]), "r"(a.word[1]), "r"(a.word[2]), "r"(a.word[3]), "r"(b.word[half]), "r"(b.word[2 + half]));
    }
};

// A float as three bfloat16, which have all of its bits. A lane has four of 16 steps along k of a line, two of each
// strip; which of the 16 they are called does not matter, as long as both operands agree.
struct ThreeBfloatsInRegisters {
    static constexpr int PARTS = 3;
    static constexpr int STEPS = 2;
    using Words = Strip;  // pairs of bfloat16

    static __device__ __forceinline__ void split(const Strip (&raw)[STEPS], Words (&parts)[PARTS])
    {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            // mma.sync has k 0 .. 7 in words 0 and 1, 8 .. 15 in words 2 and 3: those are the strips.
            const unsigned x = raw[i / 2].word[i % 2], y = raw[i / 2].word[i % 2 + 2];
            parts[0].word[i] = __byte_perm(x, y, 0x7632);  // cut off: rounding could overflow
            const float x_rest = __uint_as_float(x) - __uint_as_float(x & 0xffff0000);
            const float y_rest = __uint_as_float(y) - __uint_as_float(y & 0xffff0000);
            const unsigned second = pair(x_rest, y_rest);
            parts[1].word[i] = second;
            parts[2].word[i] = pair(
                x_rest - __uint_as_float(second << 16), y_rest - __uint_as_float(second & 0xffff0000));
        }
    }

    static __device__ __forceinline__ void multiply(float (&sums)[4], const Words& a, const Words& b, int half)
    {
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
            "{%0, %1, %2, %3};"
            : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
            : "r"(a.word[0]), "r"(a.word[1]), "r"(a.word[2]), "r"(a.word[3]), "r"(b.word[half]), "r"(b.word[2 + half]));
    }

private:
    // Both rounded to the nearest bfloat16, x in the lower half.
    static __device__ __forceinline__ unsigned pair(float x, float y)
    {
        unsigned both;
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(y), "f"(x));
        return both;
    }
};

// The parts of strips whose steps along k follow each other.
template <class Parts, int STRIPS>
__device__ __forceinline__ void split(
    const Strip (&raw)[Parts::STEPS][STRIPS], typename Parts::Words (&parts)[STRIPS][Parts::PARTS])
{
#pragma unroll
    for (int i = 0; i < STRIPS; ++i) {
        Strip steps[Parts::STEPS];
#pragma unroll
        for (int s = 0; s < Parts::STEPS; ++s) steps[s] = raw[s][i];
        Parts::split(steps, parts[i]);
    }
}
