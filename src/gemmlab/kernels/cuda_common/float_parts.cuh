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

    // Each part of two neighbours as a pair, the first neighbour in the lower half of the word.
    static __device__ __forceinline__ void split(float x, float y, unsigned (&pairs)[PARTS])
    {
        float of_x, of_y;  // the first parts
        asm("cvt.rn.f16x2.f32 %0, %2, %1;" : "=r"(pairs[0]) : "f"(x), "f"(y));
        asm("{ .reg .f16 low, high; mov.b32 {low, high}, %2; cvt.f32.f16 %0, low; cvt.f32.f16 %1, high; }"
            : "=f"(of_x), "=f"(of_y)
            : "r"(pairs[0]));
        asm("cvt.rn.f16x2.f32 %0, %2, %1;" : "=r"(pairs[1]) : "f"((x - of_x) * 2048.0f), "f"((y - of_y) * 2048.0f));
    }
};

// A float as the sum of three bfloat16, which has all of its bits. The first is cut off: rounding could overflow.
// Rows are scaled to 2^57: sums of 128 products stay below 2^123, and the product of two elements that are 2^-100 of the
// largest of their rows is above 2^-86, so that its last bits are above 2^-126, where tensor cores lose none.
struct ThreeBfloats {
    static constexpr int PARTS = 3, TOP = 57;

    static __device__ __forceinline__ bool suit(unsigned verdict) { return bfloats_suit(verdict); }

    static __device__ __forceinline__ void split(float x, float y, unsigned (&pairs)[PARTS])
    {
        pairs[0] = __byte_perm(__float_as_uint(x), __float_as_uint(y), 0x7632);
        const float x_rest = x - lower(pairs[0]), y_rest = y - upper(pairs[0]);
        asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(pairs[1]) : "f"(x_rest), "f"(y_rest));
        asm("cvt.rn.bf16x2.f32 %0, %2, %1;"
            : "=r"(pairs[2])
            : "f"(x_rest - lower(pairs[1])), "f"(y_rest - upper(pairs[1])));
    }

private:
    static __device__ __forceinline__ float lower(unsigned pair) { return __uint_as_float(pair << 16); }
    static __device__ __forceinline__ float upper(unsigned pair) { return __uint_as_float(pair & 0xffff0000); }
};
