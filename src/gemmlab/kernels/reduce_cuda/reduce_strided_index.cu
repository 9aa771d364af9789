/* gemmlab
summary = "the same tree, threads packed: the first ones add, each at its own stride"
idea = "The threads that add fill whole warps, and warps with nothing to do leave a step at once: less divergence."
source = "Chinese article on GPU reductions after Mark Harris: its reduce1"
op = "reduce"
after = "reduce_interleaved"
arch = "sm_80"
params = { BLOCK = 256 }
tune = { BLOCK = [128, 256, 512, 1024] }
require = ["BLOCK == 128 or BLOCK == 256 or BLOCK == 512 or BLOCK == 1024"]
grid = "max(1, ceil_div(N, BLOCK))"
threads = "BLOCK"
again = { N = "blocks", x = "out" }
roundings = "10"
expect = [
    # Now 4, 2, 1, 1, 1, 1, 1 and 1 warps load. But their wavefronts are 4 * 2, 2 * 4, 8, 8, 8, 4, 2 and 1: again 47.
    { shape = "256", that = "shared_load_requests == 2 * 12 + 1" },
    { shape = "256", that = "shared_load_wavefronts == 2 * 47 + 1" },
    { shape = "256", that = "shared_load_excess == 2 * (47 - 12) and shared_store_excess == 47 - 12" },
]
*/

#include "reduce.cuh"

// The additions of reduce_interleaved, by the first threads in a row instead of by every second, fourth, eighth:
//
//    values      a   b   c   d   e   f   g   h
//    stride 1    ab      cd      ef      gh           threads 0, 1, 2, 3 at 0, 2, 4, 6
//    stride 2    abcd            efgh                 threads 0, 1       at 0, 4
//    stride 4    abcdefgh                             thread 0
//
// But neighbouring lanes now read words 2 * stride apart. Shared memory has 32 banks, a word each: the lanes that are
// 32 / (2 * stride) apart meet in a bank. With 256 threads the steps take 2, 4, 8, 8, 8, 4, 2 and 1 wavefronts where
// one would do: strides double, and from the fourth step on there are fewer lanes.
template <int BLOCK, int OPERATOR>
__global__ void __launch_bounds__(BLOCK) reduce_strided_index(long long N, const float* x, float* out)
{
    __shared__ float values[BLOCK];
    const unsigned thread = threadIdx.x;  // [0, BLOCK)
    values[thread] = load_or_identity<OPERATOR>(x, blockIdx.x * static_cast<Index>(BLOCK) + thread, N);
    __syncthreads();

    for (unsigned stride = 1; stride < blockDim.x; stride *= 2) {
        const unsigned first = 2 * stride * thread;
        if (first < blockDim.x)
            values[first] = combine<OPERATOR>(values[first], values[first + stride]);
        __syncthreads();
    }
    if (thread == 0) out[blockIdx.x] = values[0];
}
