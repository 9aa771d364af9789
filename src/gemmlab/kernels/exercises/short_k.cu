/* exercise
task = """
A tall A of 32 columns times a small B: each block loads all of B for a tile of 32 rows, and waits at a barrier between
loads and multiply-adds. Launch 16 blocks instead. Each brings B into shared memory once; then its warps take rows in
turn, each for itself, without another barrier."""
expect = [
    { shape = "4096x32x32", that = "barriers <= 8 * 16" },
    { shape = "4096x32x32", that = "global_load_sectors <= (M * K + 16 * K * N) // 8" },
]
*/
/* gemmlab
exercise = "short_k"
require = ["M % 32 == 0 and N == 32 and K == 32"]
grid = "M // 32"
threads = "32, 8"
*/

__global__ void my_kernel(int M, int N, int K, const float* A, const float* B, float* C)
{
    __shared__ float As[32][32], Bs[32][32];
    const int x = threadIdx.x, y = threadIdx.y;
    const int row = blockIdx.x * 32;

    for (int i = y; i < 32; i += 8) {
        As[i][x] = A[(row + i) * K + x];
        Bs[i][x] = B[i * N + x];
    }
    __syncthreads();
    for (int i = y; i < 32; i += 8) {
        float sum = 0.0f;
        for (int k = 0; k < 32; ++k) sum += As[i][k] * Bs[k][x];
        C[(row + i) * N + x] = sum;
    }
}
