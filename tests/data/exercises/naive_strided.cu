/* gemmlab
exercise = "naive_strided"
grid = "ceil_div(M * N, 256)"
threads = "256"
*/

__global__ void my_kernel(
    int M, int N, int K, const float* A, int lda, const float* B, int ldb, float* C, int ldc)
{
    const long long element = blockIdx.x * 256ll + threadIdx.x;
    if (element >= static_cast<long long>(M) * N) return;
    const long long row = element / N;
    const long long col = element % N;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum += A[row * lda + k] * B[static_cast<long long>(k) * ldb + col];
    C[row * ldc + col] = sum;
}
