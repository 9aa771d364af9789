// How two numbers become one, and how the threads of a block do it together.
#pragma once

using Index = long long;  // a length may be beyond 2^31

// The operators by number; the values of the template parameter OPERATOR.
constexpr int SUM = 0;
constexpr int MAX = 1;
constexpr int MIN = 2;

constexpr int WARP = 32;
constexpr unsigned ALL_LANES = 0xffffffffu;

// The operator's identity: combined with it, every number stays as it is. It is also the result of no numbers.
template <int OPERATOR>
__device__ __forceinline__ float identity()
{
    return OPERATOR == SUM ? 0.0f : __int_as_float(OPERATOR == MAX ? 0xff800000 : 0x7f800000);  // -Inf, +Inf
}

// The greatest and the least are NaN where either number is, unlike those of fmaxf and fminf.
template <int OPERATOR>
__device__ __forceinline__ float combine(float a, float b)
{
    if (OPERATOR == SUM) return a + b;
    float result;
    if (OPERATOR == MAX)
        asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    else
        asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
}

// A vector's four numbers, each into the partial result of its place.
template <int OPERATOR>
__device__ __forceinline__ void combine_four(float (&four)[4], float4 vector)
{
    four[0] = combine<OPERATOR>(four[0], vector.x);
    four[1] = combine<OPERATOR>(four[1], vector.y);
    four[2] = combine<OPERATOR>(four[2], vector.z);
    four[3] = combine<OPERATOR>(four[3], vector.w);
}

// How many elements lie before the first one at a multiple of 16 bytes: 0 to 3.
__device__ __forceinline__ unsigned words_to_alignment(const float* x)
{
    return -(static_cast<unsigned>(reinterpret_cast<unsigned long long>(x)) / sizeof(float)) % 4;
}

// Element i, or the identity if there is no such element.
template <int OPERATOR>
__device__ __forceinline__ float load_or_identity(const float* x, Index i, Index N)
{
    return i < N ? x[i] : identity<OPERATOR>();
}

// The 64 values that are left in shared memory, by one warp, without barriers of the block. Lane 0 gets the result.
//
// A warp's lanes need not run in lockstep, and `volatile` does not change that. A lane reads what another one has
// written, hence the __syncwarp between a write and the read, and again before the next write.
//
//    values     [ 0 .. 31 | 32 .. 63 ]
//    distance 32   lane l:  own  <- values[l] + values[l + 32]
//    distance 16            values[l] <- own;  own <- own + values[l + 16]      and so on to 1
//
// From distance 16 on the upper lanes add what nobody asks for; only [0, distance) matter.
template <int OPERATOR>
__device__ __forceinline__ float finish_in_warp(float* values, int lane)
{
    float own = combine<OPERATOR>(values[lane], values[lane + WARP]);
#pragma unroll
    for (int distance = WARP / 2; distance > 0; distance /= 2) {
        __syncwarp();
        values[lane] = own;
        __syncwarp();
        own = combine<OPERATOR>(own, values[lane + distance]);
    }
    return own;
}

// Lane 0 gets the combined values of COUNT lanes, a power of two, through registers. All lanes of the warp call this.
template <int OPERATOR, int COUNT = WARP>
__device__ __forceinline__ float reduce_lanes(float own)
{
#pragma unroll
    for (int distance = COUNT / 2; distance > 0; distance /= 2)
        own = combine<OPERATOR>(own, __shfl_down_sync(ALL_LANES, own, distance));
    return own;
}

// Combines the values of all threads; thread 0 gets the result. Each warp combines its own, then the first warp those
// of all warps. A barrier must lie between two calls, because they use the same shared memory.
//
//    warp 0   * * * ... *  -> warp_values[0]  \
//    warp 1   * * * ... *  -> warp_values[1]   |  one barrier, then warp 0 alone
//      :                           :          /
template <int BLOCK, int OPERATOR>
__device__ __forceinline__ float reduce_block(float own)
{
    constexpr int WARPS = BLOCK / WARP;
    __shared__ float warp_values[WARPS];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    own = reduce_lanes<OPERATOR>(own);
    if (lane == 0) warp_values[warp] = own;
    __syncthreads();
    if (warp == 0) own = reduce_lanes<OPERATOR, WARPS>(warp_values[lane % WARPS]);
    return own;
}
