/* gemmlab
summary = "each step adds the upper half of the values to the lower half"
idea = "Neighbouring lanes read neighbouring words, so there are no bank conflicts."
source = "Chinese article on GPU reductions after Mark Harris: its reduce2"
op = "reduce"
after = "reduce_strided_index"
arch = "sm_80"
params = { BLOCK = 256 }
tune = { BLOCK = [128, 256, 512, 1024] }
require = ["BLOCK == 128 or BLOCK == 256 or BLOCK == 512 or BLOCK == 1024"]
grid = "max(1, ceil_div(N, BLOCK))"
threads = "BLOCK"
again = { N = "blocks", x = "out" }
roundings = "10"
expect = [
    { shape = "256", that = "shared_load_requests == 2 * 12 + 1 and shared_load_wavefronts == 2 * 12 + 1" },
    { shape = "256", that = "shared_load_excess == 0 and shared_store_excess == 0" },
    { shape = "65536", that = "barriers == 8 * 9 * (N // BLOCK + 1)" },
]
*/

#include "reduce.cuh"

// The upper half is added to the lower one, again and again:
//
//    values      a   b   c   d | e   f   g   h
//    stride 4    ae  bf  cg  dh                       threads 0, 1, 2, 3
//    stride 2    aceg  bdfh                           threads 0, 1
//    stride 1    abcdefgh                             thread 0
template <int BLOCK, int OPERATOR>
__global__ void __launch_bounds__(BLOCK) reduce_sequential(long long N, const float* x, float* out)
{
    __shared__ float values[BLOCK];
    const unsigned thread = threadIdx.x;  // [0, BLOCK)
    values[thread] = load_or_identity<OPERATOR>(x, blockIdx.x * static_cast<Index>(BLOCK) + thread, N);
    __syncthreads();

    for (unsigned stride = blockDim.x / 2; stride > 0; stride /= 2) {
        if (thread < stride) values[thread] = combine<OPERATOR>(values[thread], values[thread + stride]);
        __syncthreads();
    }
    if (thread == 0) out[blockIdx.x] = values[0];
}
