/* gemmlab
exercise = "reduce_first_add"
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
