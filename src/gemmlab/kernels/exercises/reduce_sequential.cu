/* exercise
task = """
Lanes read words 2, 4, 8 ... apart and meet in the banks. Add the second half of what is left to the first half
instead: as many steps and loads, and no conflict."""
expect = [
    { shape = "256", that = "shared_load_requests <= 25 and shared_load_excess == 0 and shared_store_excess == 0" },
]
*/
/* gemmlab
exercise = "reduce_sequential"
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
        const unsigned place = 2 * stride * thread;
        if (place < blockDim.x) values[place] += values[place + stride];
        __syncthreads();
    }
    if (thread == 0) out[blockIdx.x] = values[0];
}
