/* gemmlab
exercise = "sum_rows"
op = "sums"
require = ["n1 * n2 * n3 == 1 and k1 * k2 == 1 and t0 == 1"]
grid = "ceil_div(n0, 8)"
threads = "256"
args = "n0, s0, o0, k0, x, out"
*/

__global__ void my_kernel(long long n0, long long s0, long long o0, long long k0, const float* x, float* out)
{
    const long long row = blockIdx.x * 8ll + threadIdx.x / 32;
    if (row >= n0) return;
    x += row * s0;
    float sum = 0.0f;
    for (long long i = threadIdx.x % 32; i < k0; i += 32) sum += x[i];
    for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_down_sync(0xffffffffu, sum, distance);
    if (threadIdx.x % 32 == 0) out[row * o0] = sum;
}
