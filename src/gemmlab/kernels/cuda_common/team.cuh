// Threads that work on one result together: a team of 1, 2, 4 .. BLOCK threads, of which the first gets the sum.
#pragma once

#include "parts.cuh"
#include "strided.cuh"

__device__ __forceinline__ float sum_of(float4 vector) { return (vector.x + vector.y) + (vector.z + vector.w); }

// COUNT values, added in pairs. COUNT is a power of two.
template <int COUNT, class Value>
__device__ __forceinline__ Value sum_in_pairs(Value (&values)[COUNT])
{
#pragma unroll
    for (int width = 1; width < COUNT; width *= 2)
#pragma unroll
        for (int i = 0; i < COUNT; i += 2 * width) values[i] = values[i] + values[i + width];
    return values[0];
}

// Quotient and remainder by a power of two.
__device__ __forceinline__ unsigned over(unsigned number, unsigned power) { return number >> (__ffs(power) - 1); }
__device__ __forceinline__ unsigned modulo(unsigned number, unsigned power) { return number & (power - 1); }

// The sum of each team's values, one a thread; the team's first thread gets it. All threads of the block call this. A
// barrier must lie between two calls with teams of more than a warp.
//
//    team of 128    warp 0 .. 3 by themselves -> warp_sums[0 .. 3], then the first four lanes of warp 0
template <int BLOCK>
__device__ __forceinline__ float sum_team(float own, int team)
{
    __shared__ float warp_sums[BLOCK / WARP];
#pragma unroll 1
    for (int distance = min(team, WARP) / 2; distance > 0; distance /= 2)
        own += __shfl_down_sync(ALL_LANES, own, distance);
    if (team <= WARP) return own;

    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = over(team, WARP);
    if (lane == 0) warp_sums[warp] = own;
    __syncthreads();
    own = warp_sums[min(warp + lane, BLOCK / WARP - 1)];
#pragma unroll 1
    for (int distance = warps / 2; distance > 0; distance /= 2) own += __shfl_down_sync(ALL_LANES, own, distance);
    return own;
}

// Adds the strips of a team, `lanes` threads each with four sums: lane l of the first strip gets the sums of lanes l of
// all strips. All threads of the block call this; a barrier must lie between two calls.
//
//    lanes = 8    warp:  strip 0 | strip 1 | strip 2 | strip 3     by shuffles, 16 and 8 lanes apart
//    block:       the strips that are left, a warp or `lanes` threads apart, by shared memory
template <int BLOCK>
__device__ __forceinline__ float4 sum_strips(float4 own, int team, int lanes)
{
    __shared__ float4 strip_sums[BLOCK];
#pragma unroll 1
    for (int distance = min(team, WARP) / 2; distance >= lanes; distance /= 2) {
        own.x += __shfl_down_sync(ALL_LANES, own.x, distance);
        own.y += __shfl_down_sync(ALL_LANES, own.y, distance);
        own.z += __shfl_down_sync(ALL_LANES, own.z, distance);
        own.w += __shfl_down_sync(ALL_LANES, own.w, distance);
    }
    const int apart = max(lanes, WARP);
    if (team <= apart) return own;

    strip_sums[threadIdx.x] = own;
    __syncthreads();
    if (modulo(threadIdx.x, team) < lanes)
#pragma unroll 1
        for (int other = apart; other < team; other += apart) own = own + strip_sums[threadIdx.x + other];
    return own;
}
