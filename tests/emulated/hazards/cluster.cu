// Clusters of 4 blocks, on a grid of 6: no GPU launches it.
extern "C" __global__ void __cluster_dims__(4, 1, 1) fours_bad(float* out) {  // HERE
    out[blockIdx.x * blockDim.x + threadIdx.x] = 1.0f;
}
extern "C" __global__ void __cluster_dims__(2, 1, 1) fours_good(float* out) {
    out[blockIdx.x * blockDim.x + threadIdx.x] = 1.0f;
}
