/* exercise
task = """
Lanes walk down a column of C here, so a load of A and a store of C touch 32 sectors. Predict how many they should
touch, then change the two lines that turn a thread's number into row and column."""
expect = [
    { shape = "64x64x32", that = "global_store_sectors_per_request == 4" },
    { shape = "64x64x32", that = "global_load_sectors <= 5 * M * N * K // 32" },
]
*/
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
    const long long row = element % M;
    const long long col = element / M;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum += A[row * lda + k] * B[static_cast<long long>(k) * ldb + col];
    C[row * ldc + col] = sum;
}
