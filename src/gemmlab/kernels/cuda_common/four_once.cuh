// Four words of an operand that a kernel reads once, from global memory to registers, and how caches treat them:
//
//   ONCE = 0   as any other word
//          2   not kept in the level-1 cache, and evicted first from the level-2 cache: data that others have written
//              stays there and is not written back to memory meanwhile
//
// A value of 1, for the level-1 cache alone, was nowhere faster than 2.
#pragma once

#include "tile.cuh"

// Four words `apart` from each other, of which `left` exist (maybe below 0 or above 4). The others become zeros and are
// not read. FOURS says that all four exist or none does, and that they are contiguous and aligned.
template <bool FOURS, int ONCE>
__device__ __forceinline__ float4 load_four_once(const float* from, Offset apart, int left)
{
    float4 four = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if constexpr (!FOURS) {
        if (left > 0) four.x = from[0];
        if (left > 1) four.y = from[apart];
        if (left > 2) four.z = from[2 * apart];
        if (left > 3) four.w = from[3 * apart];
    } else if constexpr (ONCE == 0) {
        if (left > 0) four = __ldg(reinterpret_cast<const float4*>(from));
    } else {
        static_assert(ONCE == 2);
        unsigned long long policy;
        asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
        if (left > 0)
            asm("ld.global.nc.L1::no_allocate.L2::cache_hint.v4.f32 {%0, %1, %2, %3}, [%4], %5;"
                : "=f"(four.x), "=f"(four.y), "=f"(four.z), "=f"(four.w)
                : "l"(from), "l"(policy));
    }
    return four;
}
