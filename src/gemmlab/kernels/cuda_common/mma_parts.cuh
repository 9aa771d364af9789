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

// Lines (rows of A, columns of B) that are split as they are.
struct UnscaledLines {
    struct Scale {};

    template <int BM, int BN>
    __device__ __forceinline__ bool suit(int, int) const
    {
        return true;
    }
    template <int STRIPS>
    __device__ __forceinline__ void load_of_a(Scale (&)[STRIPS], int) const
    {
    }
    template <int STRIPS>
    __device__ __forceinline__ void load_of_b(Scale (&)[STRIPS], int) const
    {
    }
    template <class Sums>
    __device__ __forceinline__ void undo(Sums&, int, int) const
    {
    }
};

// All products of a step in one sum, which starts from zero. `Order` says which parts meet, the smallest first.
template <class Order>
struct OneSum {
    template <class Parts, class Words>
    static __device__ __forceinline__ void add(
        float (&sums)[4], const Words (&a)[Parts::PARTS], const Words (&b)[Parts::PARTS], int half)
    {
        float products[4] = {};
#pragma unroll
        for (int p = 0; p < Order::COUNT; ++p)
            Parts::multiply(products, a[Order::a_part(p)], b[Order::b_part(p)], half);
#pragma unroll
        for (int element = 0; element < 4; ++element) sums[element] += products[element];
    }
};

// A float as two TF32 numbers of 11 bits each: 23 bits of 24.
struct TwoTf32 {
    static constexpr int PARTS = 2;
    static constexpr int STEPS = 1;  // strips along k that a product takes: 8 of k
    using Words = Strip;             // a part of 16 lines, as mma.sync wants it
    using Range = PartsRange;
    using Scale = UnscaledLines::Scale;

    static __device__ __forceinline__ void split(const Strip (&raw)[STEPS], Scale, Words (&parts)[PARTS])
    {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const unsigned word = raw[0].word[i], high = (word + 0x1000) & 0xffffe000;  // the nearest
            parts[0].word[i] = high;
            // Half a unit is added before the tensor core truncates: that rounds.
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

// A float as three bfloat16, which have all of its bits. A lane has four of the 16 steps along k of a line, two of each
// strip. mma.sync may take them for any four of the 16, as long as both operands agree.
struct ThreeBfloatsInRegisters {
    static constexpr int PARTS = 3;
    static constexpr int STEPS = 2;
    using Words = Strip;  // pairs of bfloat16
    using Range = PartsRange;
    using Scale = UnscaledLines::Scale;

    static __device__ __forceinline__ void split(const Strip (&raw)[STEPS], Scale, Words (&parts)[PARTS])
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

// A float, scaled, as two halves: `high` + `low` / 2^11. Words are arranged as those of bfloat16.
struct TwoHalvesInRegisters {
    static constexpr int PARTS = 2;
    static constexpr int STEPS = 2;
    using Words = Strip;  // pairs of halves

    // Lines are looked at before they are multiplied (line_scales.cuh).
    struct Range {
        template <int STRIPS>
        __device__ __forceinline__ void watch(const Strip (&)[STRIPS])
        {
        }
        __device__ __forceinline__ bool holds() const { return true; }
    };

    // The scales of the lines of a strip that a lane has, l / 4 and 8 + l / 4.
    struct Scale {
        float of_line[2];
    };

    static __device__ __forceinline__ void split(const Strip (&raw)[STEPS], const Scale& scale, Words (&parts)[PARTS])
    {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float x = __uint_as_float(raw[i / 2].word[i % 2]) * scale.of_line[i % 2];
            const float y = __uint_as_float(raw[i / 2].word[i % 2 + 2]) * scale.of_line[i % 2];
            const unsigned high = pair(x, y);
            float x_high, y_high;
            asm("{.reg .b16 x, y; mov.b32 {x, y}, %2; cvt.f32.f16 %0, x; cvt.f32.f16 %1, y;}"
                : "=f"(x_high), "=f"(y_high)
                : "r"(high));
            parts[0].word[i] = high;
            parts[1].word[i] = pair((x - x_high) * 2048.0f, (y - y_high) * 2048.0f);
        }
    }

    static __device__ __forceinline__ void multiply(float (&sums)[4], const Words& a, const Words& b, int half)
    {
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
            "{%0, %1, %2, %3};"
            : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
            : "r"(a.word[0]), "r"(a.word[1]), "r"(a.word[2]), "r"(a.word[3]), "r"(b.word[half]), "r"(b.word[2 + half]));
    }

    // The same with 8 of the 16 of k: strip 0 or 1 of them.
    template <int STRIP>
    static __device__ __forceinline__ void multiply_strip(float (&sums)[4], const Words& a, const Words& b, int half)
    {
        asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
            : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
            : "r"(a.word[2 * STRIP]), "r"(a.word[2 * STRIP + 1]), "r"(b.word[2 * STRIP + half]));
    }

private:
    // Both rounded to the nearest half, x in the lower half.
    static __device__ __forceinline__ unsigned pair(float x, float y)
    {
        unsigned both;
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(y), "f"(x));
        return both;
    }
};

// The parts of strips whose steps along k follow each other.
template <class Parts, int STRIPS>
__device__ __forceinline__ void split(
    const Strip (&raw)[Parts::STEPS][STRIPS], const typename Parts::Scale (&scales)[STRIPS],
    typename Parts::Words (&parts)[STRIPS][Parts::PARTS])
{
#pragma unroll
    for (int i = 0; i < STRIPS; ++i) {
        Strip steps[Parts::STEPS];
#pragma unroll
        for (int s = 0; s < Parts::STEPS; ++s) steps[s] = raw[s][i];
        Parts::split(steps, scales[i], parts[i]);
    }
}
