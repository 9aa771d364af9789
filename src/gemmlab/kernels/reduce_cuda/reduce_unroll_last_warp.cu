/* gemmlab
summary = "the last six steps by one warp, without barriers of the block"
idea = "Once 64 values are left, one warp is at work and the others wait at barriers for nothing: six barriers less."
source = "Chinese article on GPU reductions after Mark Harris: its reduce4"
op = "reduce"
after = "reduce_first_add"
arch = "sm_80"
params = { BLOCK = 256 }
tune = { BLOCK = [128, 256, 512, 1024] }
require = ["BLOCK == 128 or BLOCK == 256 or BLOCK == 512 or BLOCK == 1024"]
grid = "max(1, ceil_div(N, 2 * BLOCK))"
threads = "BLOCK"
again = { N = "blocks", x = "out" }
roundings = "11"
expect = [
    # Three barriers of nine are left: after loading, and in front of 128 and 64 values.
    { shape = "65536", that = "barriers == 8 * 3 * (N // (2 * BLOCK) + 1)" },
    { shape = "65536", that = "shared_load_excess == 0 and executed_BRA > 0" },
]
*/

#include "reduce.cuh"

template <int BLOCK, int OPERATOR>
__global__ void __launch_bounds__(BLOCK) reduce_unroll_last_warp(long long N, const float* x, float* out)
{
    __shared__ float values[BLOCK];
    const unsigned thread = threadIdx.x;  // [0, BLOCK)
    const Index i = blockIdx.x * static_cast<Index>(2 * BLOCK) + thread;
    values[thread] =
        combine<OPERATOR>(load_or_identity<OPERATOR>(x, i, N), load_or_identity<OPERATOR>(x, i + BLOCK, N));
    __syncthreads();

    for (unsigned stride = blockDim.x / 2; stride > WARP; stride /= 2) {
        if (thread < stride) values[thread] = combine<OPERATOR>(values[thread], values[thread + stride]);
        __syncthreads();
    }
    if (thread < WARP) {
        const float result = finish_in_warp<OPERATOR>(values, thread);
        if (thread == 0) out[blockIdx.x] = result;
    }
}
