/* exercise
task = """
A thread loads two words for one multiply-add. Let it compute two elements of a column of C, so that a word of B
serves twice: three words for two multiply-adds. The grid has half as many blocks then; M may be odd."""
expect = [
    { shape = "64x64x32", that = "global_load_requests <= 3 * M * N * K // 64" },
    { shape = "64x64x32", that = "global_store_sectors_per_request == 4" },
]
*/
/* gemmlab
exercise = "naive"
grid = "ceil_div(M, 8) * ceil_div(N, 32)"
threads = "32, 8"
*/

__global__ void my_kernel(
    int M, int N, int K, const float* A, int lda, const float* B, int ldb, float* C, int ldc)
{
    const int across = (N + 31) / 32;
    const long long row = blockIdx.x / across * 8 + threadIdx.y;
    const long long col = blockIdx.x % across * 32 + threadIdx.x;
    if (row >= M || col >= N) return;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum += A[row * lda + k] * B[static_cast<long long>(k) * ldb + col];
    C[row * ldc + col] = sum;
}
