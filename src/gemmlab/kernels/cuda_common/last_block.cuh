// One launch in place of two: blocks leave partial results, and the last of them to finish goes on with them all.
#pragma once

#include "parts.cuh"

// Where the blocks of one launch meet: a ticket that is 0 before the launch and after it, and room for a partial result
// of each block. Launches with the same memory must follow each other, as on one stream they do; others may overlap.
class Meeting {
    unsigned* finished;  // blocks so far; 0 again when the last one has counted itself
    float* partials;

public:
    __device__ __forceinline__ Meeting(unsigned* ticket, float* memory) : finished(ticket), partials(memory) {}

    // Leave this block's result. True for the block that does so last: it then sees what all others have left.
    __device__ __forceinline__ bool leave(float partial) const
    {
        partials[blockIdx.x] = partial;
        fence_of_gpu();  // the partial result is there for all before the count tells of it
        const bool last = atomicInc(finished, gridDim.x - 1) == gridDim.x - 1;
        fence_of_gpu();  // and no partial result is read before the count said that it is there
        return last;
    }

    // Another block's result: from the level-2 cache, where blocks meet. A level-1 cache may hold what was before.
    __device__ __forceinline__ float partial_of(unsigned block) const { return __ldcg(partials + block); }
};
