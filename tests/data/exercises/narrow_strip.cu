/* gemmlab
exercise = "narrow_strip"
require = ["M == 8 and N % 32 == 0 and K % 32 == 0"]
grid = "N // 32"
threads = "32, 8"
*/

__global__ void my_kernel(int M, int N, int K, const float* A, const float* B, float* C)
{
    __shared__ float parts[8][8][32];  // warp, row, column
    const int lane = threadIdx.x, warp = threadIdx.y;
    const int col = blockIdx.x * 32 + lane;

    float sums[8] = {};
    for (int k = warp; k < K; k += 8) {
        const float b = B[k * N + col];
        for (int row = 0; row < 8; ++row) sums[row] += A[row * K + k] * b;
    }
    for (int row = 0; row < 8; ++row) parts[warp][row][lane] = sums[row];
    __syncthreads();
    float sum = 0.0f;
    for (int i = 0; i < 8; ++i) sum += parts[i][warp][lane];
    C[warp * N + col] = sum;
}
