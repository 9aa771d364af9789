// cp.async: from global into shared memory past the registers; it needs sm_80.
//
// A copy is complete once its thread has waited for the group that it belongs to. Other threads see it after a barrier
// that follows this wait. Destination and source are aligned to the size of the copy.
#pragma once

#include "shared_address.cuh"

// One float. It may land anywhere, so this is how a tile is turned on its way in.
__device__ __forceinline__ void copy_one_async(float* dst, const float* src)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(dst)), "l"(src) : "memory");
}

// One float, or zero where it does not `exist`; then `src` is not read.
__device__ __forceinline__ void copy_one_async(float* dst, const float* src, bool exists)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_address(dst)), "l"(src),
                 "r"(exists ? 4 : 0)
                 : "memory");
}

// One float, if it is `wanted`; else nothing happens. The predicate spares the loop around it a branch.
__device__ __forceinline__ void copy_one_async_if(bool wanted, float* dst, const float* src)
{
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %2, 0; @p cp.async.ca.shared.global [%0], [%1], 4; }" ::"r"(
            shared_address(dst)),
        "l"(src), "r"(static_cast<int>(wanted))
        : "memory");
}

// Four floats side by side, through L2 only: a tile is read once by a block, so L1 would keep it in vain.
__device__ __forceinline__ void copy_four_async(float* dst, const float* src)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(dst)), "l"(src) : "memory");
}

// The same where adjacent lanes or the next copies read the rest of 128 bytes: the level-2 cache fetches all of them.
__device__ __forceinline__ void copy_four_of_line_async(float* dst, const float* src)
{
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(shared_address(dst)), "l"(src) : "memory");
}

// The same for data that is read once: the level-2 cache evicts its lines first. So data that others have written and
// will read stays there and is not written back meanwhile. The policy is a constant in the instruction's descriptor.
__device__ __forceinline__ unsigned long long once_policy()
{
    unsigned long long policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}
__device__ __forceinline__ void copy_four_of_line_once_async(float* dst, const float* src)
{
    asm volatile("cp.async.cg.shared.global.L2::cache_hint.L2::128B [%0], [%1], 16, %2;" ::"r"(shared_address(dst)),
                 "l"(src), "l"(once_policy())
                 : "memory");
}

// Four floats, of which the first `cols` exist (maybe below 0 or above 4). The others become zeros and are not read.
__device__ __forceinline__ void copy_four_async(float* dst, const float* src, int cols)
{
    const int bytes = 4 * min(max(cols, 0), 4);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(dst)), "l"(src), "r"(bytes)
                 : "memory");
}

// Four floats, if they are `wanted`.
__device__ __forceinline__ void copy_four_async_if(bool wanted, float* dst, const float* src)
{
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %2, 0; @p cp.async.cg.shared.global [%0], [%1], 16; }" ::"r"(
            shared_address(dst)),
        "l"(src), "r"(static_cast<int>(wanted))
        : "memory");
}

// WIDTH floats, 1 or 4, if they `exist`, else zeros; or only if they are `wanted`. ONCE: nobody else reads them.
template <int WIDTH, bool ONCE = false>
__device__ __forceinline__ void copy_async(float* dst, const float* src, bool exists)
{
    if constexpr (ONCE && WIDTH == 4)
        asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2, %3;" ::"r"(shared_address(dst)),
                     "l"(src), "r"(exists ? 16 : 0), "l"(once_policy())
                     : "memory");
    else if constexpr (ONCE)
        asm volatile("cp.async.ca.shared.global.L2::cache_hint [%0], [%1], 4, %2, %3;" ::"r"(shared_address(dst)),
                     "l"(src), "r"(exists ? 4 : 0), "l"(once_policy())
                     : "memory");
    else if constexpr (WIDTH == 4) copy_four_async(dst, src, exists ? 4 : 0);
    else copy_one_async(dst, src, exists);
}
template <int WIDTH, bool ONCE = false>
__device__ __forceinline__ void copy_async_if(bool wanted, float* dst, const float* src)
{
    if constexpr (ONCE && WIDTH == 4)
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %2, 0; "
                     "@p cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %3; }" ::"r"(shared_address(dst)),
                     "l"(src), "r"(static_cast<int>(wanted)), "l"(once_policy())
                     : "memory");
    else if constexpr (ONCE)
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %2, 0; "
                     "@p cp.async.ca.shared.global.L2::cache_hint [%0], [%1], 4, %3; }" ::"r"(shared_address(dst)),
                     "l"(src), "r"(static_cast<int>(wanted)), "l"(once_policy())
                     : "memory");
    else if constexpr (WIDTH == 4) copy_four_async_if(wanted, dst, src);
    else copy_one_async_if(wanted, dst, src);
}

// The copies this thread has started since the last commit are a group, even if there are none.
__device__ __forceinline__ void commit_copies()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until at most PENDING of this thread's latest groups are still under way.
template <int PENDING>
__device__ __forceinline__ void wait_for_copies()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}
