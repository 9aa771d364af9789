/* exercise
task = """
Threads compute addresses and carry every word of a tile through registers. Let the copy engine bring whole boxes: say
in the header which box a copy brings, `[maps]` with `A = { type = "float32", box = "32, 32" }` and B likewise; take
`const __grid_constant__ CUtensorMap A` and B for the pointers; and include tensor_copy.cuh, which has copy_box and the
barriers that count its bytes. Two stages, so that thread 0 asks for the next boxes before this step is multiplied."""
expect = [
    { shape = "64x96x128", that = "global_load_requests == 0 and executed_UTMALDG == 2 * (M // 32) * (N // 32) * (K // 32)" },
]
*/
/* gemmlab
exercise = "tma_pipeline"
arch = "sm_90a"
require = ["M % 32 == 0 and N % 32 == 0 and K % 32 == 0"]
grid = "N // 32, M // 32"
threads = "256"
*/

__global__ void __launch_bounds__(256) my_kernel(int M, int N, int K, const float* A, const float* B, float* C)
{
    __shared__ float As[32][32], Bs[32][32];
    const int x = threadIdx.x % 32, y = threadIdx.x / 32;
    const long long row = blockIdx.y * 32, col = blockIdx.x * 32;

    float sums[4] = {};
    for (int k0 = 0; k0 < K; k0 += 32) {
        for (int i = y; i < 32; i += 8) {
            As[i][x] = A[(row + i) * K + k0 + x];
            Bs[i][x] = B[static_cast<long long>(k0 + i) * N + col + x];
        }
        __syncthreads();
        for (int k = 0; k < 32; ++k)
            for (int i = 0; i < 4; ++i) sums[i] += As[y + 8 * i][k] * Bs[k][x];
        __syncthreads();
    }
    for (int i = 0; i < 4; ++i) C[(row + y + 8 * i) * N + col + x] = sums[i];
}
