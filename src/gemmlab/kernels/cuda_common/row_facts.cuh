// What the launch that splits floats finds out about 128 elements of a row, for its scale and its verdict.
#pragma once

#include "float_parts.cuh"

// Magnitudes are the bits of floats, whose order is that of the floats.
struct RowFacts {
    static constexpr unsigned INFINITE = 0x7f800000;

    unsigned largest = 0;            // a NaN, if there is one
    unsigned least = INFINITE;       // of elements that are no NaN
    unsigned small = 0, zeros = 0;   // numbers of elements below `limit`, and of zeros
    unsigned least_but_0 = INFINITE;

    template <int COUNT>
    __device__ __forceinline__ void see(const float (&values)[COUNT])
    {
        float most = __uint_as_float(largest), fewest = __uint_as_float(least);
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            asm("max.NaN.f32 %0, %1, %2;" : "=f"(most) : "f"(most), "f"(fabsf(values[i])));
            fewest = fminf(fewest, fabsf(values[i]));
        }
        largest = __float_as_uint(most);
        least = __float_as_uint(fewest);
    }

    // 2^-12 of the largest. It is 0 for a row below 2^-115, which is UNFIT anyway.
    __device__ __forceinline__ unsigned limit() const { return largest - min(largest, 12u << 23); }

    // No element is small or zero, so nothing has to be counted.
    __device__ __forceinline__ bool is_plain() const { return least && least >= limit(); }

    template <int COUNT>
    __device__ __forceinline__ void count_small(const float (&values)[COUNT])
    {
        const float below = __uint_as_float(limit());
#pragma unroll
        for (int i = 0; i < COUNT; ++i)  // in PTX, so that the magnitude is a modifier of the comparison
            asm("{ .reg .pred p; setp.lt.f32 p, %1, %2; @p add.u32 %0, %0, 1; }"
                : "+r"(small)
                : "f"(fabsf(values[i])), "f"(below));
    }
    template <int COUNT>
    __device__ __forceinline__ void count_zeros(const float (&values)[COUNT])
    {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            const unsigned size = magnitude(values[i]);
            zeros += size == 0;
            if (size) least_but_0 = min(least_but_0, size);
        }
    }

    // The verdict, once all that is not plain is counted. `absent` of 128 elements are zeros behind the end of the row.
    __device__ __forceinline__ unsigned verdict(unsigned absent) const
    {
        if (largest == 0) return 0;  // all are zero, and exact
        const unsigned depth = 128 - absent, exponent = largest >> 23;
        // Between the powers of two at or below the largest and below the least: a power of two is below itself here.
        const unsigned range = exponent - ((least ? least : least_but_0) - 1 >> 23);
        unsigned bits = 0;
        if (exponent < LEAST_EXPONENT || exponent > MOST_EXPONENT) bits |= UNFIT;
        if (range > 27) bits |= WIDE;
        if (range > 100) bits |= WIDER;
        if (4 * (small - absent) > depth) bits |= SMALL;
        if (4 * (zeros - absent) > 3 * depth) bits |= THIN;
        return bits;
    }
};
