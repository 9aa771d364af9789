// Where a result and its terms lie in arrays of any strides.
#pragma once

#include "reduce.cuh"

// An axis of the result: its extent, its step in the array that is summed, and its step in the result.
struct Axis {
    Index extent, step, out_step;
};

struct Place {
    Index in, out;  // elements from the start of each array
};

// A function of its own, so that its code stands in a kernel once.
__device__ __noinline__ unsigned long long quotient(unsigned long long number, unsigned long long divisor)
{
    return number / divisor;
}

// The place of element `number`, counted along the first axis fastest. The last axis that it reaches takes no division.
template <int AXES>
__device__ __forceinline__ Place place_of(Index number, const Axis (&axes)[AXES])
{
    Place place = {number * axes[0].step, number * axes[0].out_step};
    if (number < axes[0].extent) return place;
    place = {0, 0};
#pragma unroll
    for (int axis = 0; axis < AXES; ++axis) {
        Index index = number, above = 0;
        if (number >= axes[axis].extent) {
            above = quotient(number, axes[axis].extent);
            index = number - above * axes[axis].extent;
        }
        place.in += index * axes[axis].step;
        place.out += index * axes[axis].out_step;
        number = above;
    }
    return place;
}

// For all threads of a launch alike: whether vectors of 16 bytes can begin at x and at every multiple of `steps`.
template <int STEPS>
__device__ __forceinline__ bool on_vectors(const float* x, const Index (&steps)[STEPS])
{
    Index all = 0;
#pragma unroll
    for (int i = 0; i < STEPS; ++i) all |= steps[i];
    return words_to_alignment(x) == 0 && all % 4 == 0;
}
