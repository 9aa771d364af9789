/* gemmlab
exercise = "thread_tile_1d"
require = ["M % 32 == 0 and N % 32 == 0 and K % 32 == 0"]
grid = "N // 32, M // 32"
threads = "32, 8"
*/

__global__ void my_kernel(int M, int N, int K, const float* A, const float* B, float* C)
{
    __shared__ float As[32][32], Bs[32][32];
    const int x = threadIdx.x, y = threadIdx.y * 4;
    const int row = blockIdx.y * 32 + y, col = blockIdx.x * 32 + x;

    float sums[4] = {};
    for (int k0 = 0; k0 < K; k0 += 32) {
        for (int i = 0; i < 4; ++i) {
            As[y + i][x] = A[(row + i) * K + k0 + x];
            Bs[y + i][x] = B[(k0 + y + i) * N + col];
        }
        __syncthreads();
        for (int k = 0; k < 32; ++k) {
            const float b = Bs[k][x];
            for (int i = 0; i < 4; ++i) sums[i] += As[y + i][k] * b;
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; ++i) C[(row + i) * N + col] = sums[i];
}
