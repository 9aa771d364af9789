/* gemmlab
summary = "the tree unrolled for the block size it is compiled for"
idea = "The steps are known to the compiler: no counter, no comparison and no jump is left of the loop."
source = "Chinese article on GPU reductions after Mark Harris: its reduce5"
op = "reduce"
after = "reduce_unroll_last_warp"
arch = "sm_80"
params = { BLOCK = 256 }
tune = { BLOCK = [128, 256, 512, 1024] }
require = ["BLOCK == 128 or BLOCK == 256 or BLOCK == 512 or BLOCK == 1024"]
grid = "max(1, ceil_div(N, 2 * BLOCK))"
threads = "BLOCK"
again = { N = "blocks", x = "out" }
roundings = "11"
expect = [
    { shape = "65536", that = "executed_BRA == 0" },
    { shape = "65536", that = "barriers == 8 * 3 * (N // (2 * BLOCK) + 1)" },
]
*/

#include "reduce.cuh"

template <int BLOCK, int OPERATOR>
__global__ void __launch_bounds__(BLOCK) reduce_unrolled(long long N, const float* x, float* out)
{
    __shared__ float values[BLOCK];
    const unsigned thread = threadIdx.x;  // [0, BLOCK)
    const Index i = blockIdx.x * static_cast<Index>(2 * BLOCK) + thread;
    values[thread] =
        combine<OPERATOR>(load_or_identity<OPERATOR>(x, i, N), load_or_identity<OPERATOR>(x, i + BLOCK, N));
    __syncthreads();

#pragma unroll
    for (unsigned stride = BLOCK / 2; stride > WARP; stride /= 2) {
        if (thread < stride) values[thread] = combine<OPERATOR>(values[thread], values[thread + stride]);
        __syncthreads();
    }
    if (thread < WARP) {
        const float result = finish_in_warp<OPERATOR>(values, thread);
        if (thread == 0) out[blockIdx.x] = result;
    }
}
