// One launch where two would do: blocks leave partial results, and the last of them to finish goes on with them all.
#pragma once

// Where the blocks of one launch meet: in memory that is zeros before the first launch, and that a launch leaves ready
// for the next one. Launches with the same memory must follow each other, as on one stream they do; others may overlap.
//
//    word   0           1 .. 31   32 ..
//           finished    unused    partial results, one a block
//
// The count has 128 bytes for itself: all blocks change it, while others write what they leave.
class Meeting {
    static constexpr int FIRST_PARTIAL = 32;

    unsigned* finished;  // blocks so far; 0 again when the last one has counted itself
    float* partials;

public:
    __device__ __forceinline__ explicit Meeting(void* memory)
        : finished(static_cast<unsigned*>(memory)), partials(static_cast<float*>(memory) + FIRST_PARTIAL)
    {
    }

    // Leave this block's result. True for the block that does so last: it then sees what all others have left.
    __device__ __forceinline__ bool leave(float partial) const
    {
        partials[blockIdx.x] = partial;
        __threadfence();  // the partial result is there for all before the count tells of it
        const bool last = atomicInc(finished, gridDim.x - 1) == gridDim.x - 1;
        __threadfence();  // and no partial result is read before the count said that it is there
        return last;
    }

    // Another block's result: from the level-2 cache, where blocks meet. A level-1 cache may hold what was before.
    __device__ __forceinline__ float partial_of(unsigned block) const { return __ldcg(partials + block); }
};
