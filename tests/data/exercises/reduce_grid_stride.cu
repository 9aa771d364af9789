/* gemmlab
exercise = "reduce_grid_stride"
op = "reduce"
require = ["OPERATOR == 0"]  # the sum
grid = "max(1, min(64, ceil_div(N, 512)))"
threads = "256"
again = { N = "blocks", x = "out" }
*/

__global__ void my_kernel(long long N, const float* x, float* out)
{
    __shared__ float values[256];
    const unsigned thread = threadIdx.x;
    float own = 0.0f;
    for (long long i = blockIdx.x * 256ll + thread; i < N; i += gridDim.x * 256ll) own += x[i];
    values[thread] = own;
    __syncthreads();

    if (thread < 128) values[thread] += values[thread + 128];
    __syncthreads();
    if (thread < 64) values[thread] += values[thread + 64];
    __syncthreads();
#pragma unroll
    for (unsigned left = 32; left > 0; left /= 2) {
        float sum = 0.0f;
        if (thread < 32) sum = values[thread] + values[thread + left];
        __syncwarp();
        if (thread < 32) values[thread] = sum;
        __syncwarp();
    }
    if (thread == 0) out[blockIdx.x] = values[0];
}
