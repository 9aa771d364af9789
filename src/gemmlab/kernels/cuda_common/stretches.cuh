// Steps dealt out to blocks in stretches, one behind the other, each as long as the others or a step longer.
#pragma once

// `Step` holds the number of all steps.
template <class Step>
struct Stretches {
    Step each;      // steps of a block
    unsigned more;  // blocks that have one more

    __device__ __forceinline__ Stretches(Step steps, unsigned blocks)
        : each(steps / blocks), more(static_cast<unsigned>(steps % blocks))
    {
    }
    __device__ __forceinline__ Step first_step(unsigned block) const { return block * each + min(block, more); }
    __device__ __forceinline__ unsigned block_of(Step step) const
    {
        const Step longer = more * (each + 1);  // steps of the blocks that have one more
        return static_cast<unsigned>(step < longer ? step / (each + 1) : more + (step - longer) / each);
    }
};
