/* exercise
task = """
When 64 values are left, one warp adds them and seven wait at barriers for it: six barriers for nothing. Let the
last warp finish without barriers of the block. Its lanes do not run in step by themselves: __syncwarp, or shuffles."""
expect = [
    { shape = "65536", that = "barriers <= 8 * 3 * (N // 512 + 1)" },
]
*/
/* gemmlab
exercise = "reduce_unroll_last_warp"
op = "reduce"
require = ["OPERATOR == 0"]  # the sum
grid = "max(1, ceil_div(N, 512))"
threads = "256"
again = { N = "blocks", x = "out" }
*/

__global__ void my_kernel(long long N, const float* x, float* out)
{
    __shared__ float values[256];
    const unsigned thread = threadIdx.x;
    const long long i = blockIdx.x * 512ll + thread;
    values[thread] = (i < N ? x[i] : 0.0f) + (i + 256 < N ? x[i + 256] : 0.0f);
    __syncthreads();

    for (unsigned left = blockDim.x / 2; left > 0; left /= 2) {
        if (thread < left) values[thread] += values[thread + left];
        __syncthreads();
    }
    if (thread == 0) out[blockIdx.x] = values[0];
}
