/* exercise
task = """
A tall A of 16 columns times a small B: each block loads all of B for a tile of 32 rows, and waits at a barrier between
loads and multiply-adds. Launch 16 blocks instead. Each brings B into shared memory once; then its warps take tiles of
rows in turn, each for itself, without another barrier."""
expect = [
    { shape = "4096x32x16", that = "barriers <= 8 * 16" },
    { shape = "4096x32x16", that = "8 * global_load_sectors <= M * K + 16 * K * N" },
]
*/
/* gemmlab
exercise = "short_k"
require = ["M % 128 == 0 and N == 32 and K == 16"]
grid = "M // 32"
threads = "32, 8"
*/

__global__ void my_kernel(int M, int N, int K, const float* A, const float* B, float* C)
{
    __shared__ float As[32][16], Bs[16][32];
    const int x = threadIdx.x, y = threadIdx.y;
    const int row = blockIdx.x * 32;

    for (int i = y * 32 + x; i < 32 * 16; i += 256) {
        As[i / 16][i % 16] = A[row * K + i];
        Bs[i / 32][i % 32] = B[i];
    }
    __syncthreads();
    for (int i = y; i < 32; i += 8) {
        float sum = 0.0f;
        for (int k = 0; k < 16; ++k) sum += As[i][k] * Bs[k][x];
        C[(row + i) * N + x] = sum;
    }
}
