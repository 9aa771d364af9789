/* exercise
task = """
Sixteen warps multiply tiles of 64 x 16 and 16 x 64 by WMMA. load_matrix_sync hands the words of a piece to lanes in an
order of its own, which no program can change: for A a load reads 8 rows and 4 neighbouring columns, for B 4 rows and 8
columns. Where a row is 16 or 64 floats long, several of these lie in one bank. Choose A_ROW and B_ROW, multiples of 4,
so that the 32 words of each load lie in 32 banks."""
expect = [
    { shape = "128x64x64", that = "shared_load_excess == 0" },
    { shape = "128x64x64", that = "executed_HMMA_1684_F32_TF32 == M * N * K // 512" },
]
*/
/* gemmlab
exercise = "wmma_tf32_pipelined"
arch = "sm_80"
precision = "tf32"
align = 32
require = ["M % 64 == 0 and N % 64 == 0 and K % 16 == 0"]
grid = "N // 64, M // 64"
threads = "512"
*/

#include <mma.h>

__global__ void my_kernel(int M, int N, int K, const float* A, const float* B, float* C)
{
    constexpr int A_ROW = 16, B_ROW = 64;  // floats from one row of a tile to the next
    __shared__ __align__(128) float As[64 * A_ROW];
    __shared__ __align__(128) float Bs[16 * B_ROW];
    using namespace nvcuda::wmma;
    fragment<matrix_a, 16, 16, 8, precision::tf32, row_major> a;
    fragment<matrix_b, 16, 16, 8, precision::tf32, row_major> b;
    fragment<accumulator, 16, 16, 8, float> sums;
    fill_fragment(sums, 0.0f);
    const long long row = blockIdx.y * 64, col = blockIdx.x * 64;
    const int warp = threadIdx.x / 32, y = warp / 4 * 16, x = warp % 4 * 16;

    for (int from = 0; from < K; from += 16) {
        for (int i = threadIdx.x; i < 64 * 16; i += 512)
            As[i / 16 * A_ROW + i % 16] = A[(row + i / 16) * K + from + i % 16];
        for (int i = threadIdx.x; i < 16 * 64; i += 512)
            Bs[i / 64 * B_ROW + i % 64] = B[static_cast<long long>(from + i / 64) * N + col + i % 64];
        __syncthreads();
        for (int k = 0; k < 16; k += 8) {
            load_matrix_sync(a, As + y * A_ROW + k, A_ROW);
            load_matrix_sync(b, Bs + k * B_ROW + x, B_ROW);
            for (int i = 0; i < a.num_elements; ++i) a.x[i] = __float_to_tf32(a.x[i]);
            for (int i = 0; i < b.num_elements; ++i) b.x[i] = __float_to_tf32(b.x[i]);
            mma_sync(sums, a, b, sums);
        }
        __syncthreads();
    }
    store_matrix_sync(C + (row + y) * N + col + x, sums, N, mem_row_major);
}
