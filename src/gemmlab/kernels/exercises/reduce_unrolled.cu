/* exercise
task = """
The loops end at blockDim.x, which the compiler does not know, so they count, compare and jump. Write the steps for
256 threads, or end the loops at a constant and unroll them: no jump is left in the machine code."""
expect = [
    { shape = "65536", that = "executed_BRA == 0" },
    { shape = "65536", that = "barriers <= 8 * 3 * (N // 512 + 1)" },
]
*/
/* gemmlab
exercise = "reduce_unrolled"
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

    for (unsigned left = blockDim.x / 2; left > 32; left /= 2) {
        if (thread < left) values[thread] += values[thread + left];
        __syncthreads();
    }
    for (unsigned left = 32; left > 0; left /= 2) {
        float sum = 0.0f;
        if (thread < 32) sum = values[thread] + values[thread + left];
        __syncwarp();
        if (thread < 32) values[thread] = sum;
        __syncwarp();
    }
    if (thread == 0) out[blockIdx.x] = values[0];
}
