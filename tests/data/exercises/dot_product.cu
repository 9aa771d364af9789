/* gemmlab
exercise = "dot_product"
require = ["N == 1"]
grid = "ceil_div(M, 8)"
threads = "256"
*/

__global__ void my_kernel(int M, int N, int K, const float* A, const float* B, float* C)
{
    const int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= M) return;
    float sum = 0.0f;
    for (int k = lane; k < K; k += 32) sum += A[static_cast<long long>(row) * K + k] * B[k];
    for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_down_sync(0xffffffffu, sum, distance);
    if (lane == 0) C[row] = sum;
}
