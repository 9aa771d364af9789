/* exercise
task = """
A thread reads two words from shared memory for each multiply-add. Let 256 threads compute the tile, each four
results that lie below each other: a word of Bs then serves four multiply-adds from a register, so five words serve
four."""
expect = [
    { shape = "64x96x64", says = "words of shared memory loaded by a warp, each for all its lanes", that = "executed_LDS + executed_LDS_64 + 3 * executed_LDS_128 <= 5 * M * N * K // 128" },
    "shared_load_excess == 0 and shared_store_excess == 0",
]
*/
/* gemmlab
exercise = "thread_tile_1d"
require = ["M % 32 == 0 and N % 32 == 0 and K % 32 == 0"]
grid = "N // 32, M // 32"
threads = "32, 32"
*/

__global__ void my_kernel(int M, int N, int K, const float* A, const float* B, float* C)
{
    __shared__ float As[32][32], Bs[32][32];
    const int x = threadIdx.x, y = threadIdx.y;
    const int row = blockIdx.y * 32 + y, col = blockIdx.x * 32 + x;

    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += 32) {
        As[y][x] = A[row * K + k0 + x];
        Bs[y][x] = B[(k0 + y) * N + col];
        __syncthreads();
        for (int k = 0; k < 32; ++k) sum += As[y][k] * Bs[k][x];
        __syncthreads();
    }
    C[row * N + col] = sum;
}
