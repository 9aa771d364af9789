/* exercise
task = """
From the first step on half of the threads only wait. Let each add two values, 256 apart, on their way into shared
memory, and launch half as many blocks. The end of the input may lie between the two."""
expect = [
    { shape = "65536", that = "barriers <= 8 * 9 * (N // 512 + 1)" },
]
*/
/* gemmlab
exercise = "reduce_first_add"
op = "reduce"
require = ["OPERATOR == 0"]  # the sum
grid = "max(1, ceil_div(N, 256))"
threads = "256"
again = { N = "blocks", x = "out" }
*/

__global__ void my_kernel(long long N, const float* x, float* out)
{
    __shared__ float values[256];
    const unsigned thread = threadIdx.x;
    const long long i = blockIdx.x * 256ll + thread;
    values[thread] = i < N ? x[i] : 0.0f;
    __syncthreads();

    for (unsigned left = blockDim.x / 2; left > 0; left /= 2) {
        if (thread < left) values[thread] += values[thread + left];
        __syncthreads();
    }
    if (thread == 0) out[blockIdx.x] = values[0];
}
