/* gemmlab
exercise = "reduce_interleaved"
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

    for (unsigned stride = 1; stride < blockDim.x; stride *= 2) {
        if (thread % (2 * stride) == 0) values[thread] += values[thread + stride];
        __syncthreads();
    }
    if (thread == 0) out[blockIdx.x] = values[0];
}
