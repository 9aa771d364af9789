/* exercise
task = """
One thread of each block adds all 256 values while the other 255 wait. Let them add in a tree: neighbours first,
then pairs of pairs, eight steps in all, with a barrier after each."""
expect = [
    { shape = "256", that = "shared_load_requests <= 100 and barriers >= 64" },
]
*/
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

    if (thread == 0) {
        float sum = 0.0f;
        for (int j = 0; j < 256; ++j) sum += values[j];
        out[blockIdx.x] = sum;
    }
}
