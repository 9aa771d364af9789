/* exercise
task = """
A tile for a block is all there is to do in parallel: a small C with a long k leaves most of a GPU idle. Deal the
steps of a tile to four blocks (blockIdx.z). Each leaves its part in the workspace, then takes a ticket of its tile;
the last of the four adds the parts in their order and stores them. Whoever writes for others needs a __threadfence
before the ticket, and whoever reads one after it; tickets must be 0 again at the end. In the header: workspace =
"4096 * blocks", tickets = "M // 32 * (N // 32)"."""
expect = [
    { shape = "32x64x256", that = "global_atomic_requests == 4 * (M // 32) * (N // 32)" },
    { shape = "32x64x256", that = "global_store_requests >= 4 * M * N // 32" },
]
*/
/* gemmlab
exercise = "split_k"
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
