// Rounding to TF32, and the tensor core's product of 16 x 8 by 8 x 8 as mma.sync gives it; both need sm_80.
#pragma once

// Rounds to ten bits behind the point, to nearest (ties away from zero). The tensor core ignores the 13 bits below
// them, so a value that is not rounded here is truncated there: twice the error, and always towards zero. This takes
// two instructions a value: one that leaves NaN and infinities alone, one that adds half a unit.
__device__ __forceinline__ unsigned to_tf32(float value)
{
    unsigned rounded;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(value));
    return rounded;
}

// 16 rows (of A, or columns of B) by 8 along k, spread over the warp: lane l has rows l / 4 and 8 + l / 4 at the steps
// l % 4 and 4 + l % 4. That is the layout mma.sync wants of A; the halves of it are what it wants of B.
//
//               k   0 1 2 3   4 5 6 7
//   rows  0 .. 7    word[0]   word[2]
//   rows  8 .. 15   word[1]   word[3]
struct Strip {
    unsigned word[4];
};

template <int STRIPS>
__device__ __forceinline__ void round_to_tf32(Strip (&strips)[STRIPS])
{
#pragma unroll
    for (int s = 0; s < STRIPS; ++s)
#pragma unroll
        for (int i = 0; i < 4; ++i) strips[s].word[i] = to_tf32(__uint_as_float(strips[s].word[i]));
}

// The same for finite words, by one instruction: it adds half a unit, and the tensor core truncates. Large values still
// overflow to infinity, but the largest NaN would become zero.
template <int STRIPS>
__device__ __forceinline__ void round_finite(Strip (&strips)[STRIPS])
{
#pragma unroll
    for (int s = 0; s < STRIPS; ++s)
#pragma unroll
        for (int i = 0; i < 4; ++i) strips[s].word[i] += 0x1000;
}

// Watches for NaN and infinities, two words an instruction: after one of them `seen` is not finite and stays so. It is
// not finite either after a product of two words that overflows.
template <int STRIPS>
__device__ __forceinline__ void watch(float& seen, const Strip (&strips)[STRIPS])
{
#pragma unroll
    for (int s = 0; s < STRIPS; ++s)
#pragma unroll
        for (int i = 0; i < 4; i += 2)
            seen = fmaf(__uint_as_float(strips[s].word[i]), __uint_as_float(strips[s].word[i + 1]), seen);
}

// sums (16 x 8) += a (16 x 8) * columns 8 * HALF .. 8 * HALF + 7 of b (8 x 16). Lane l has the sums of rows l / 4 (the
// first two) and 8 + l / 4, in columns 2 * (l % 4) and the next.
template <int HALF>
__device__ __forceinline__ void add_product(float (&sums)[4], const Strip& a, const Strip& b)
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a.word[0]), "r"(a.word[1]), "r"(a.word[2]), "r"(a.word[3]), "r"(b.word[HALF]), "r"(b.word[2 + HALF]));
}
