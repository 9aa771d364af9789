/* gemmlab
summary = "one warp takes a row of halves: mean, variance, result; sums are float32"
precision = "float32"
grid = "ceil_div(M, 4)"
threads = "32, 4"
*/
#include <cuda_fp16.h>

/* The sum over the lanes of a warp, the same in every lane. */
__device__ float over_warp(float value) {
    for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(0xffffffffu, value, distance);
    return value;
}

__global__ void layer_norm(const half* x, const half* gamma, const half* beta, half* y, float eps, int m, int n) {
    const int row = blockIdx.x * 4 + threadIdx.y;  // 0 <= row < m, or beyond the last row
    if (row >= m) return;
    const half* from = x + (size_t)row * n;
    float sum = 0.0f, squares = 0.0f;
    for (int j = threadIdx.x; j < n; j += 32) sum += __half2float(from[j]);
    const float mean = over_warp(sum) / n;
    for (int j = threadIdx.x; j < n; j += 32) {
        const float away = __half2float(from[j]) - mean;
        squares += away * away;
    }
    const float scale = rsqrtf(over_warp(squares) / n + eps);
    for (int j = threadIdx.x; j < n; j += 32) {
        const float normal = (__half2float(from[j]) - mean) * scale;
        y[(size_t)row * n + j] = __float2half(normal * __half2float(gamma[j]) + __half2float(beta[j]));
    }
}
