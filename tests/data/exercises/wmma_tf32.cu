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
    using namespace nvcuda::wmma;
    fragment<matrix_a, 16, 16, 8, precision::tf32, row_major> a;
    fragment<matrix_b, 16, 16, 8, precision::tf32, row_major> b;
    fragment<accumulator, 16, 16, 8, float> sums;
    fill_fragment(sums, 0.0f);
    const long long row = blockIdx.y * 16, col = blockIdx.x * 16;
    for (int k = 0; k < K; k += 8) {
        load_matrix_sync(a, A + row * K + k, K);
        load_matrix_sync(b, B + static_cast<long long>(k) * N + col, N);
        for (int i = 0; i < a.num_elements; ++i) a.x[i] = __float_to_tf32(a.x[i]);
        for (int i = 0; i < b.num_elements; ++i) b.x[i] = __float_to_tf32(b.x[i]);
        mma_sync(sums, a, b, sums);
    }
    store_matrix_sync(C + row * N + col, sums, N, mem_row_major);
}
