// Four neighbours in a row, in one instruction where that is possible.
//
// `cols` of them exist, which may be more than four, or less than one; `vectors` says that the address is a multiple
// of 16 bytes. Neither is known to the compiler, so both ways are in the code, and a warp takes one of them.
#pragma once

// Whether the rows of a matrix can be read and written in fours: floats as float4.
template <class Element>
__device__ __forceinline__ bool rows_are_aligned(const Element* base, int ld)
{
    return reinterpret_cast<unsigned long long>(base) % (4 * sizeof(Element)) == 0 && ld % 4 == 0;
}

__device__ __forceinline__ float4 load_four(const float* src, int cols, bool vectors)
{
    if (vectors && cols >= 4) return *reinterpret_cast<const float4*>(src);
    return make_float4(
        cols > 0 ? src[0] : 0.0f, cols > 1 ? src[1] : 0.0f, cols > 2 ? src[2] : 0.0f, cols > 3 ? src[3] : 0.0f);
}

// Replaces `four`, if it is `wanted`; by a predicate, because a branch would cut the loop around it in pieces.
__device__ __forceinline__ void load_four_if(bool wanted, float4& four, const float* src)
{
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %5, 0; @p ld.global.v4.f32 {%0, %1, %2, %3}, [%4]; }"
                 : "+f"(four.x), "+f"(four.y), "+f"(four.z), "+f"(four.w)
                 : "l"(src), "r"(static_cast<int>(wanted)));
}

__device__ __forceinline__ void store_four(float* dst, int cols, bool vectors, float4 value)
{
    if (vectors && cols >= 4) {
        *reinterpret_cast<float4*>(dst) = value;
        return;
    }
    if (cols > 0) dst[0] = value.x;
    if (cols > 1) dst[1] = value.y;
    if (cols > 2) dst[2] = value.z;
    if (cols > 3) dst[3] = value.w;
}

// Into shared memory, whose rows are LD words: as a row, or TURNED as a column.
template <bool TURNED, int LD>
__device__ __forceinline__ void put_four(float* dst, float4 value)
{
    if constexpr (!TURNED && LD % 4 == 0) {
        *reinterpret_cast<float4*>(dst) = value;
    } else {
        constexpr int STEP = TURNED ? LD : 1;
        dst[0 * STEP] = value.x;
        dst[1 * STEP] = value.y;
        dst[2 * STEP] = value.z;
        dst[3 * STEP] = value.w;
    }
}
