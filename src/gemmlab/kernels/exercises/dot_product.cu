/* exercise
task = """
A matrix times a column. A thread has a row of A to itself, so the lanes of a warp read 32 rows at once, a sector
each. Let a warp take a row: its lanes go along k, and shuffles add what they have at the end. Shared memory is not
needed."""
expect = [
    { shape = "64x1x1024", that = "global_load_sectors <= M * K // 4" },
    { shape = "64x1x1024", that = "executed_SHFL > 0 and shared_load_requests == 0" },
]
*/
/* gemmlab
exercise = "dot_product"
require = ["N == 1"]
grid = "ceil_div(M, 256)"
threads = "256"
*/

__global__ void my_kernel(int M, int N, int K, const float* A, const float* B, float* C)
{
    const int row = blockIdx.x * 256 + threadIdx.x;
    if (row >= M) return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum += A[static_cast<long long>(row) * K + k] * B[k];
    C[row] = sum;
}
