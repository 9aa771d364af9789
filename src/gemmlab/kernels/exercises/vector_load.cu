/* exercise
task = """
A thread brings four words of A and four of B to shared memory, one at a time. Let it bring them as one float4 each:
a quarter of the requests. Operands and rows are aligned to 16 bytes (`align`)."""
expect = [
    { shape = "64x128x64", that = "global_load_requests <= (M * K * (N // 64) + K * N * (M // 64)) // 128" },
]
*/
/* gemmlab
exercise = "vector_load"
require = ["M % 64 == 0 and N % 64 == 0 and K % 16 == 0"]
align = 16
grid = "N // 64, M // 64"
threads = "256"
*/

__global__ void my_kernel(int M, int N, int K, const float* A, const float* B, float* C)
{
    __shared__ __align__(16) float As[64][16], Bs[16][64];
    const int t = threadIdx.x;
    A += blockIdx.y * 64 * K;
    B += blockIdx.x * 64;
    C += blockIdx.y * 64 * N + blockIdx.x * 64;
    const int x = t % 16, y = t / 16 * 4;  // 4 x 4 results

    float sums[4][4] = {};
    for (int k0 = 0; k0 < K; k0 += 16) {
        for (int i = 0; i < 4; ++i) {
            const int word = t + 256 * i;
            As[word / 16][word % 16] = A[word / 16 * K + k0 + word % 16];
            Bs[word / 64][word % 64] = B[(k0 + word / 64) * N + word % 64];
        }
        __syncthreads();
        for (int k = 0; k < 16; ++k)
            for (int i = 0; i < 4; ++i)
                for (int j = 0; j < 4; ++j) sums[i][j] += As[y + i][k] * Bs[k][x + 16 * j];
        __syncthreads();
    }
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) C[(y + i) * N + x + 16 * j] = sums[i][j];
}
