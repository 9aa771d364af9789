/* exercise
task = """
A warp owns 16 x 16 results and takes 8 steps of k at a time, each lane on its own: 2,048 multiply-adds are 64 FFMA.
Let the tensor cores do them. Declare fragments of nvcuda::wmma for m16n16k8 with precision::tf32, load a 16 x 8 piece
of A and an 8 x 16 piece of B straight from global memory, round each element by __float_to_tf32, and mma_sync;
store_matrix_sync writes the sums."""
expect = [
    { shape = "64x96x64", that = "executed_HMMA_1684_F32_TF32 == M * N * K // 512" },
    { shape = "64x96x64", that = "executed_FFMA == 0" },
]
*/
/* gemmlab
exercise = "wmma_tf32"
arch = "sm_80"
precision = "tf32"
align = 32
require = ["M % 16 == 0 and N % 16 == 0 and K % 8 == 0"]
grid = "N // 16, M // 16"
threads = "32"
*/

#include <mma.h>

__global__ void my_kernel(int M, int N, int K, const float* A, const float* B, float* C)
{
    const long long row = blockIdx.y * 16, col = blockIdx.x * 16;
    const int half = threadIdx.x / 16, lane = threadIdx.x % 16;

    // A lane has 8 results of one column, every other row.
    float sums[8] = {};
    for (int k = 0; k < K; ++k)
        for (int i = 0; i < 8; ++i)
            sums[i] += A[(row + 2 * i + half) * K + k] * B[static_cast<long long>(k) * N + col + lane];
    for (int i = 0; i < 8; ++i) C[(row + 2 * i + half) * N + col + lane] = sums[i];
}
