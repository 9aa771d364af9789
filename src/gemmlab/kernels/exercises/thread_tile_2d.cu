/* exercise
task = """
A thread has 16 results below each other and reads 17 words for 16 multiply-adds. Give it 4 x 4 results: eight words
serve 16 multiply-adds. No load may meet others in a bank: let lanes beside each other read neighbouring words of Bs,
or a lane four of them by one load."""
expect = [
    { shape = "64x128x64", says = "words of shared memory loaded by a warp, each for all its lanes", that = "executed_LDS + executed_LDS_64 + 3 * executed_LDS_128 <= M * N * K // 64" },
    "shared_load_excess == 0",
]
*/
/* gemmlab
exercise = "thread_tile_2d"
require = ["M % 64 == 0 and N % 64 == 0 and K % 16 == 0"]
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
    const int x = t % 64, y = t / 64 * 16;  // 16 results below each other

    float sums[16] = {};
    for (int k0 = 0; k0 < K; k0 += 16) {
        for (int i = 0; i < 4; ++i) {
            const int word = t + 256 * i;
            As[word / 16][word % 16] = A[word / 16 * K + k0 + word % 16];
            Bs[word / 64][word % 64] = B[(k0 + word / 64) * N + word % 64];
        }
        __syncthreads();
        for (int k = 0; k < 16; ++k) {
            const float b = Bs[k][x];
            for (int i = 0; i < 16; ++i) sums[i] += As[y + i][k] * b;
        }
        __syncthreads();
    }
    for (int i = 0; i < 16; ++i) C[(y + i) * N + x] = sums[i];
}
