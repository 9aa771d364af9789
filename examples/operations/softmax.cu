/* gemmlab
summary = "a block of 256 threads takes a row: its maximum, the sum of its exponentials, its quotients"
grid = "M"
threads = "256"
*/
/* The sum (or the maximum) over all threads of the block, the same in every thread. */
template <bool MAXIMUM>
__device__ float over_block(float value, float* shared) {
    for (int distance = 16; distance > 0; distance /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, value, distance);
        value = MAXIMUM ? fmaxf(value, other) : value + other;
    }
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;  // eight warps
    __syncthreads();
    value = shared[0];
    for (int warp = 1; warp < 8; ++warp) value = MAXIMUM ? fmaxf(value, shared[warp]) : value + shared[warp];
    __syncthreads();  // Until all have read, nobody writes again.
    return value;
}

__global__ void softmax(const float* x, float* y, int m, int n) {
    __shared__ float shared[8];
    const float* from = x + (size_t)blockIdx.x * n;
    float* to = y + (size_t)blockIdx.x * n;
    float most = -INFINITY, sum = 0.0f;
    for (int j = threadIdx.x; j < n; j += 256) most = fmaxf(most, from[j]);
    most = over_block<true>(most, shared);
    for (int j = threadIdx.x; j < n; j += 256) sum += expf(from[j] - most);
    sum = over_block<false>(sum, shared);
    for (int j = threadIdx.x; j < n; j += 256) to[j] = expf(from[j] - most) / sum;
}
