/* gemmlab
summary = "one warp adds up a row"
grid = "ceil_div(M, 4)"
threads = "32, 4"
*/
__global__ void row_sums(const float* x, float* y, int m, int n) {
    const int row = blockIdx.x * 4 + threadIdx.y;  // 0 <= row < m, or beyond the last row
    if (row >= m) return;
    float sum = 0.0f;
    for (int k = threadIdx.x; k < n; k += 32) sum += x[(size_t)row * n + k];
    // Lane 0 has the sum of all lanes after five halvings.
    for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_down_sync(0xffffffffu, sum, distance);
    if (threadIdx.x == 0) y[row] = sum;
}
