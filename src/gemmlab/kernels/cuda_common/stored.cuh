// The elements of A and B as they lie in memory: floats, or halves, which become floats on their way to registers.
//
// `gemmlab.launch(..., options=["-DHALF=1"])` compiles for halves. A texture over them, four a texel of 8 bytes, gives
// floats by itself; what is loaded otherwise is converted by the loading thread. Leading dimensions count elements.
#pragma once

#include "four.cuh"

#ifndef HALF
#define HALF 0
#endif

// A 16-bit float of IEEE 754.
struct Half {
    unsigned short bits;
};

#if HALF
using Stored = Half;
#else
using Stored = float;
#endif

__device__ __forceinline__ float as_float(float value) { return value; }

__device__ __forceinline__ float as_float(Half value)
{
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(value.bits));
    return wide;
}

// Four neighbours in one load: of 16 bytes, or of 8. `src` is a multiple of that.
__device__ __forceinline__ float4 load_whole_four(const float* src) { return *reinterpret_cast<const float4*>(src); }

__device__ __forceinline__ float4 load_whole_four(const Half* src)
{
    const ushort4 four = *reinterpret_cast<const ushort4*>(src);
    return make_float4(as_float(Half{four.x}), as_float(Half{four.y}), as_float(Half{four.z}), as_float(Half{four.w}));
}
