// Work that blocks take in turn, and waits for all of it.
//
// A block waits for work that others have taken, and whoever takes a piece ends it without a wait. So nobody waits for
// a block that does not run yet, however many run at a time. The counts lie in the tickets: zero before a product and
// after it. One thread of those that work together calls these.
#pragma once

#include "parts.cuh"

struct Turns {
    enum Work { PIECES, LINES };
    static constexpr unsigned SIZE = 3;  // pieces that are taken, pieces that are done, lines that are taken

    unsigned* words;

    __device__ __forceinline__ unsigned take(Work work) const { return atomicAdd(words + 2 * work, 1u); }

    // What the threads have written, by bulk copies as well, is there for those that wait. A barrier came before this.
    __device__ __forceinline__ void end_one(Work work) const
    {
        fence_of_all_proxies();
        fence_of_gpu();
        atomicAdd(words + 2 * work + 1, 1u);
    }

    __device__ __forceinline__ void wait_for_all(Work work, unsigned count) const
    {
        unsigned done;
        do {
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(done) : "l"(words + 2 * work + 1) : "memory");
        } while (done < count);
        fence_of_all_proxies();
    }

private:
    // Between ordinary accesses and those of bulk copies, in all memory.
    static __device__ __forceinline__ void fence_of_all_proxies() { asm volatile("fence.proxy.async;" ::: "memory"); }
};
