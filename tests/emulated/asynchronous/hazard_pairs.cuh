// Shared memory of kernels with a bug and their right twins, and the names of both: NAME_bad, NAME_good.
#pragma once

#include "asynchronous.cuh"

__shared__ alignas(1024) float memory[1024];
__shared__ u64 cells[4];

__device__ u32 cell(int number) { return shared_address(&cells[number]); }
__device__ void begin(u32 count) {
    if (threadIdx.x == 0) {
        mbarrier_init(cell(0), count);
        mbarrier_init(cell(1), count);
        fence_mbarrier_init();
    }
    __syncthreads();
}

#define PAIR(NAME, PARAMETERS, ARGUMENTS)                                            \
    extern "C" __global__ void NAME##_bad PARAMETERS { NAME<false> ARGUMENTS; }     \
    extern "C" __global__ void NAME##_good PARAMETERS { NAME<true> ARGUMENTS; }
#define CLUSTERS(NAME)                                                                                  \
    extern "C" __global__ void __cluster_dims__(2, 1, 1) NAME##_bad(float* out) { NAME<false>(out); }  \
    extern "C" __global__ void __cluster_dims__(2, 1, 1) NAME##_good(float* out) { NAME<true>(out); }
