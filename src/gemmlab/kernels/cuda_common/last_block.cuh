// One launch where two would do: blocks leave partial results, and the last of them to finish goes on with them all.
//
// Memory for that is part of the program, not of the call: a launch must have ended before the next one of the same
// kernel begins, as launches on one stream do.
#pragma once

constexpr int MOST_BLOCKS = 4096;

__device__ float partials[MOST_BLOCKS];
__device__ unsigned finished = 0;  // blocks so far; 0 again when the last one has counted itself

// Leave this block's result. True for the block that does so last: it then sees what all others have left.
__device__ __forceinline__ bool leave_partial(float partial)
{
    partials[blockIdx.x] = partial;
    __threadfence();  // the partial result is there for all before the count tells of it
    const bool last = atomicInc(&finished, gridDim.x - 1) == gridDim.x - 1;
    __threadfence();  // and no partial result is read before the count said that it is there
    return last;
}

// Another block's result: from the level-2 cache, where blocks meet; a level-1 cache may hold what was there before.
__device__ __forceinline__ float partial_of(unsigned block) { return __ldcg(&partials[block]); }
