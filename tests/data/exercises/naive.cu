/* gemmlab
exercise = "naive"
grid = "ceil_div(M, 16) * ceil_div(N, 32)"
threads = "32, 8"
*/

__global__ void my_kernel(
    int M, int N, int K, const float* A, int lda, const float* B, int ldb, float* C, int ldc)
{
    const int across = (N + 31) / 32;
    const long long row = blockIdx.x / across * 16 + threadIdx.y * 2;
    const long long col = blockIdx.x % across * 32 + threadIdx.x;
    if (row >= M || col >= N) return;

    const bool two = row + 1 < M;
    const float* first = A + row * lda;
    const float* second = two ? first + lda : first;
    float sum = 0.0f, other = 0.0f;
    for (int k = 0; k < K; ++k) {
        const float b = B[static_cast<long long>(k) * ldb + col];
        sum += first[k] * b;
        other += second[k] * b;
    }
    C[row * ldc + col] = sum;
    if (two) C[(row + 1) * ldc + col] = other;
}
