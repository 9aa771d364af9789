/* gemmlab
summary = "each thread adds two elements while it loads them into shared memory"
idea = "Half of the threads had nothing to do from the first step on: now each adds once, in half as many blocks."
source = "Chinese article on GPU reductions after Mark Harris: its reduce3"
op = "reduce"
after = "reduce_sequential"
arch = "sm_80"
params = { BLOCK = 256 }
tune = { BLOCK = [128, 256, 512, 1024] }
require = ["BLOCK == 128 or BLOCK == 256 or BLOCK == 512 or BLOCK == 1024"]
grid = "max(1, ceil_div(N, 2 * BLOCK))"
threads = "BLOCK"
again = { N = "blocks", x = "out" }
roundings = "11"
expect = [
    # As many barriers a block, of which there are half as many.
    { shape = "65536", that = "barriers == 8 * 9 * (N // (2 * BLOCK) + 1)" },
    { shape = "65536", that = "shared_load_requests == (2 * 12 + 1) * (N // (2 * BLOCK) + 1)" },
]
*/

#include "reduce.cuh"

// A block takes 2 * BLOCK elements:
//
//    x    [ 0 .. BLOCK | BLOCK .. 2 * BLOCK ]
//            thread t:  values[t] = x[t] + x[BLOCK + t]
//
// Each of the two may lie behind the end, so each is guarded.
template <int BLOCK, int OPERATOR>
__global__ void __launch_bounds__(BLOCK) reduce_first_add(long long N, const float* x, float* out)
{
    __shared__ float values[BLOCK];
    const unsigned thread = threadIdx.x;  // [0, BLOCK)
    const Index i = blockIdx.x * static_cast<Index>(2 * BLOCK) + thread;
    values[thread] =
        combine<OPERATOR>(load_or_identity<OPERATOR>(x, i, N), load_or_identity<OPERATOR>(x, i + BLOCK, N));
    __syncthreads();

    for (unsigned stride = blockDim.x / 2; stride > 0; stride /= 2) {
        if (thread < stride) values[thread] = combine<OPERATOR>(values[thread], values[thread + stride]);
        __syncthreads();
    }
    if (thread == 0) out[blockIdx.x] = values[0];
}
