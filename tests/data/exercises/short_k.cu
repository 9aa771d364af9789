/* gemmlab
exercise = "short_k"
require = ["M % 32 == 0 and N == 32 and K == 32"]
grid = "16"
threads = "32, 8"
*/

__global__ void my_kernel(int M, int N, int K, const float* A, const float* B, float* C)
{
    __shared__ float Bs[32][32];
    const int lane = threadIdx.x, warp = threadIdx.y;

    for (int i = warp; i < 32; i += 8) Bs[i][lane] = B[i * N + lane];
    __syncthreads();
    for (int row = blockIdx.x * 8 + warp; row < M; row += 16 * 8) {
        const float a = A[row * K + lane];
        float sum = 0.0f;
        for (int k = 0; k < 32; ++k) sum += __shfl_sync(~0u, a, k) * Bs[k][lane];
        C[row * N + lane] = sum;
    }
}
