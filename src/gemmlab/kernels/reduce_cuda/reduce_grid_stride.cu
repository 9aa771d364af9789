/* gemmlab
summary = "a chosen number of blocks, each thread adding many elements in a register"
idea = "One tree a block for thousands of elements instead of one for every 512: nearly all work is loading and adding."
source = "Chinese article on GPU reductions after Mark Harris: its reduce6"
op = "reduce"
after = "reduce_unrolled"
arch = "sm_80"
params = { BLOCK = 256, BLOCKS = 1024 }
tune = { BLOCK = [128, 256, 512, 1024], BLOCKS = [132, 264, 528, 1024, 2048, 4096] }
require = ["BLOCK == 128 or BLOCK == 256 or BLOCK == 512 or BLOCK == 1024", "BLOCKS >= 1"]
grid = "1 if N <= max(BLOCKS, 2 * BLOCK) else min(BLOCKS, ceil_div(N, 2 * BLOCK))"
threads = "BLOCK"
again = { N = "blocks", x = "out" }
roundings = "2 * ceil_div(N, 2 * BLOCK * blocks) + 10"
expect = [
    # Trees are as many as blocks, not as elements.
    { shape = "65536", config = { BLOCKS = 16 }, that = "barriers == 8 * 3 * (16 + 1)" },
    { shape = "65536", config = { BLOCKS = 16 }, that = "global_load_requests == N // 32 + 1" },
]
*/

#include "reduce.cuh"

// The grid steps through the elements; blocks are as many as BLOCKS says, or fewer where there is not enough for them:
//
//    x    [ block 0 | block 1 | .. | block 0 | block 1 | .. | block 0 | .. ]      2 * BLOCK elements each
//
// What a block leaves is added up by one more launch, of a single block that steps through as many elements as there
// were blocks.
template <int BLOCK, int OPERATOR>
__global__ void __launch_bounds__(BLOCK) reduce_grid_stride(long long N, const float* x, float* out)
{
    __shared__ float values[BLOCK];
    const unsigned thread = threadIdx.x;  // [0, BLOCK)
    float own = identity<OPERATOR>();
    for (Index i = blockIdx.x * static_cast<Index>(2 * BLOCK) + thread; i < N;
         i += gridDim.x * static_cast<Index>(2 * BLOCK)) {
        own = combine<OPERATOR>(own, x[i]);
        if (i + BLOCK < N) own = combine<OPERATOR>(own, x[i + BLOCK]);
    }
    values[thread] = own;
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
