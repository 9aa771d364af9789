// Sum in one launch: the last block to finish adds what the others left (thread fence and a ticket).
#include "reductions.cuh"

__device__ unsigned int finished = 0;

template <int BLOCK>
__global__ void sum_all(const float* in, float* partial, float* out, int n) {
    __shared__ float scratch[32];
    __shared__ bool last;
    float v = 0;
    for (int i = blockIdx.x * BLOCK + threadIdx.x; i < n; i += gridDim.x * BLOCK) v += in[i];
    v = block_reduce(v, scratch, Sum());
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = v;
        __threadfence();
        last = atomicInc(&finished, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    v = 0;
    for (int i = threadIdx.x; i < gridDim.x; i += BLOCK) v += ((volatile float*)partial)[i];
    v = block_reduce(v, scratch, Sum());
    if (threadIdx.x == 0) *out = v;
}
