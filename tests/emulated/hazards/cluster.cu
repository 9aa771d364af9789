// Clusters of 4 blocks, on a grid of 6: no GPU launches it.
extern "C" __global__ void __cluster_dims__(4, 1, 1) fours_bad(float* out) {  // HERE
    out[blockIdx.x * blockDim.x + threadIdx.x] = 1.0f;
}
extern "C" __global__ void __cluster_dims__(2, 1, 1) fours_good(float* out) {
    out[blockIdx.x * blockDim.x + threadIdx.x] = 1.0f;
}

// One warp of the second block never leaves its loop, and the other waits for it.
extern "C" __global__ void __cluster_dims__(2, 1, 1) second_bad(volatile float* out, unsigned n) {
    if (blockIdx.x == 0) return;
    unsigned state = 1;
    if (threadIdx.x >= 32) while (state != n) { state = state * 5 & 1023; out[threadIdx.x] = state; }  // CIRCLE
    __syncthreads();
    out[threadIdx.x] = state;
}
