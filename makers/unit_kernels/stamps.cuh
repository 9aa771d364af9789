// Clocks of warps, for makers/unit_costs.py. A warp's record is four words of 64 bits: clock at its start, clock at its end, SM, nanoseconds at its start.
#pragma once

__device__ __forceinline__ unsigned long long clock_now()
{
    unsigned long long t;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(t)::"memory");
    return t;
}

__device__ __forceinline__ unsigned long long nanoseconds_now()
{
    unsigned long long t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)::"memory");
    return t;
}

__device__ __forceinline__ unsigned sm_now()
{
    unsigned sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    return sm;
}

__device__ __forceinline__ unsigned long long* own_record(unsigned long long* when)
{
    const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x, warps = (blockDim.x * blockDim.y + 31) / 32;
    return when + 4 * (static_cast<unsigned long long>(blockIdx.x) * warps + thread / 32);
}

__device__ __forceinline__ bool first_lane() { return (threadIdx.y * blockDim.x + threadIdx.x) % 32 == 0; }

__device__ __forceinline__ void stamp_start(unsigned long long* when)
{
    if (first_lane()) {
        unsigned long long* mine = own_record(when);
        mine[2] = sm_now();
        mine[3] = nanoseconds_now();
        mine[0] = clock_now();
    }
}

__device__ __forceinline__ void stamp_end(unsigned long long* when)
{
    if (first_lane()) own_record(when)[1] = clock_now();
}

// The address of a word in shared memory, as ld.shared takes it.
__device__ __forceinline__ unsigned word_address(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
