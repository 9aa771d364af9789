/* gemmlab
summary = "a tree in shared memory between neighbours, threads picked by a remainder"
idea = "A block adds its values in as many steps as a tree is deep; one thread would need an addition for each."
source = "Chinese article on GPU reductions after Mark Harris: its reduce0"
op = "reduce"
after = ""
arch = "sm_80"
params = { BLOCK = 256 }
tune = { BLOCK = [128, 256, 512, 1024] }
require = ["BLOCK == 128 or BLOCK == 256 or BLOCK == 512 or BLOCK == 1024"]
grid = "max(1, ceil_div(N, BLOCK))"
threads = "BLOCK"
again = { N = "blocks", x = "out" }
roundings = "10"
expect = [
    # Of the eight warps all load in the first five steps, then 4, 2 and 1 of them: 47 times two, and the result.
    { shape = "256", that = "shared_load_requests == 2 * 47 + 1" },
    { shape = "256", that = "shared_load_excess == 0 and shared_store_excess == 0" },
    { shape = "65536", that = "barriers == 8 * 9 * (N // BLOCK + 1)" },
]
*/

#include "reduce.cuh"

// Step by step, neighbours become one. The threads that add are spread over all warps, so every warp goes through every
// step until its last thread drops out, most of its lanes doing nothing:
//
//    thread      0   1   2   3   4   5   6   7
//    values      a   b   c   d   e   f   g   h
//    stride 1    ab      cd      ef      gh           threads 0, 2, 4, 6
//    stride 2    abcd            efgh                 threads 0, 4
//    stride 4    abcdefgh                             thread 0
//
// The loop ends at blockDim.x, which the compiler does not know, here and in the rungs up to the one that unrolls it.
template <int BLOCK, int OPERATOR>
__global__ void __launch_bounds__(BLOCK) reduce_interleaved(long long N, const float* x, float* out)
{
    __shared__ float values[BLOCK];
    const unsigned thread = threadIdx.x;  // [0, BLOCK)
    values[thread] = load_or_identity<OPERATOR>(x, blockIdx.x * static_cast<Index>(BLOCK) + thread, N);
    __syncthreads();

    for (unsigned stride = 1; stride < blockDim.x; stride *= 2) {
        if (thread % (2 * stride) == 0)
            values[thread] = combine<OPERATOR>(values[thread], values[thread + stride]);
        __syncthreads();
    }
    if (thread == 0) out[blockIdx.x] = values[0];
}
