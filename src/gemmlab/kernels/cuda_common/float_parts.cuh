// Floats as sums of 16-bit parts: how one element is cut, and the scale that its row has.
#pragma once

#include "verdicts.cuh"

constexpr unsigned LEAST_EXPONENT = 127 - 60, MOST_EXPONENT = 127 + 60;  // of the largest element, biased

struct Scale {
    float down;  // what elements are multiplied by
    float up;    // its inverse
};

// Brings the largest element of a row to 2^TOP .. 2^(TOP + 1). `largest` are the bits of its magnitude.
template <int TOP>
__device__ __forceinline__ Scale scale_for(unsigned largest)
{
    const unsigned exponent = min(max(largest >> 23, LEAST_EXPONENT), MOST_EXPONENT);
    return {__uint_as_float((127 + TOP + 127 - exponent) << 23), __uint_as_float((exponent - TOP) << 23)};
}

__device__ __forceinline__ unsigned magnitude(float x) { return __float_as_uint(x) & 0x7fffffff; }

// A float as `high` + `low` / 2^11, which has 23 of its 24 bits. Only a float below 2^-27 of its row's largest has an
// error of up to 2^-50 of that largest one. If three quarters of the elements of both operands are above 2^-12 of the
// largest, half of all products are above 2^-24 of the largest product, and those errors do not matter.
struct TwoHalves {
    static constexpr int PARTS = 2, TOP = 14;

    static __device__ __forceinline__ bool suit(unsigned verdict) { return halves_suit(verdict); }

    static __device__ __forceinline__ void split(float x, unsigned short (&parts)[PARTS])
    {
        float rounded;
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(parts[0]) : "f"(x));
        asm("cvt.f32.f16 %0, %1;" : "=f"(rounded) : "h"(parts[0]));
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(parts[1]) : "f"((x - rounded) * 2048.0f));
    }
};

// A float as the sum of three bfloat16, which has all of its bits. The first is cut off: rounding could overflow.
// Rows are scaled to 2^57: sums of 128 products stay below 2^123, and the product of two elements that are 2^-100 of the
// largest of their rows is above 2^-86, so that its last bits are above 2^-126, where tensor cores lose none.
struct ThreeBfloats {
    static constexpr int PARTS = 3, TOP = 57;

    static __device__ __forceinline__ bool suit(unsigned verdict) { return bfloats_suit(verdict); }

    static __device__ __forceinline__ void split(float x, unsigned short (&parts)[PARTS])
    {
        const unsigned high = __float_as_uint(x) & 0xffff0000;
        parts[0] = static_cast<unsigned short>(high >> 16);
        const float rest = x - __uint_as_float(high);
        asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(parts[1]) : "f"(rest));
        const float last = rest - __uint_as_float(static_cast<unsigned>(parts[1]) << 16);
        asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(parts[2]) : "f"(last));
    }
};
