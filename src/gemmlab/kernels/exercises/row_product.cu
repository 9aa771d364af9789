/* exercise
task = """
A row times a matrix. A lane has one column and reads one word of B at a time. Give it four neighbouring columns, as
one float4: a quarter of the requests for the same bytes."""
expect = [
    { shape = "1x512x64", that = "executed_LDG_128 == K * N // 128" },
    { shape = "1x512x64", that = "executed_STG_128 == N // 128" },
]
*/
/* gemmlab
exercise = "row_product"
require = ["M == 1 and N % 128 == 0"]
align = 16
grid = "N // 128"
threads = "128"
*/

__global__ void my_kernel(int M, int N, int K, const float* A, const float* B, float* C)
{
    const int col = blockIdx.x * 128 + threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum += A[k] * B[static_cast<long long>(k) * N + col];
    C[col] = sum;
}
