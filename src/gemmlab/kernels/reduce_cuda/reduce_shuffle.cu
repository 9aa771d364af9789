/* gemmlab
summary = "lanes of a warp exchange registers; shared memory holds one value a warp"
idea = "A shuffle hands over a register without a write, a barrier and a read: one barrier is left of the whole tree."
source = "Chinese article on GPU reductions after Mark Harris: its reduce7"
op = "reduce"
after = "reduce_grid_stride"
arch = "sm_80"
params = { BLOCK = 256, BLOCKS = 1024 }
tune = { BLOCK = [128, 256, 512, 1024], BLOCKS = [132, 264, 528, 1024, 2048, 4096] }
require = ["BLOCK == 128 or BLOCK == 256 or BLOCK == 512 or BLOCK == 1024", "BLOCKS >= 1"]
grid = "1 if N <= max(BLOCKS, 2 * BLOCK) else min(BLOCKS, ceil_div(N, 2 * BLOCK))"
threads = "BLOCK"
again = { N = "blocks", x = "out" }
roundings = "2 * ceil_div(N, 2 * BLOCK * blocks) + 10"
expect = [
    # Eight warps of five shuffles each, then three for the eight values that they left: of shared memory one load.
    { shape = "65536", config = { BLOCKS = 16 }, that = "executed_SHFL == (8 * 5 + 3) * (16 + 1)" },
    { shape = "65536", config = { BLOCKS = 16 }, that = "shared_load_requests == 16 + 1" },
    { shape = "65536", config = { BLOCKS = 16 }, that = "barriers == 8 * (16 + 1)" },
]
*/

#include "reduce.cuh"

template <int BLOCK, int OPERATOR>
__global__ void __launch_bounds__(BLOCK) reduce_shuffle(long long N, const float* x, float* out)
{
    const unsigned thread = threadIdx.x;  // [0, BLOCK)
    float own = identity<OPERATOR>();
    for (Index i = blockIdx.x * static_cast<Index>(2 * BLOCK) + thread; i < N;
         i += gridDim.x * static_cast<Index>(2 * BLOCK)) {
        own = combine<OPERATOR>(own, x[i]);
        if (i + BLOCK < N) own = combine<OPERATOR>(own, x[i + BLOCK]);
    }
    own = reduce_block<BLOCK, OPERATOR>(own);
    if (thread == 0) out[blockIdx.x] = own;
}
