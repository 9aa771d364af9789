/* gemmlab
exercise = "row_product"
require = ["M == 1 and N % 128 == 0"]
align = 16
grid = "N // 128"
threads = "32"
*/

__global__ void my_kernel(int M, int N, int K, const float* A, const float* B, float* C)
{
    const int col = blockIdx.x * 128 + threadIdx.x * 4;
    float4 sum = {};
    for (int k = 0; k < K; ++k) {
        const float4 b = *reinterpret_cast<const float4*>(B + static_cast<long long>(k) * N + col);
        sum.x += A[k] * b.x;
        sum.y += A[k] * b.y;
        sum.z += A[k] * b.z;
        sum.w += A[k] * b.w;
    }
    *reinterpret_cast<float4*>(C + col) = sum;
}
