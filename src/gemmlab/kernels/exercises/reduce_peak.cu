/* exercise
task = """
A thread loads one value at a time. Let it load four as a float4 (x is aligned to 16 bytes): a quarter of the
requests. The last values may be fewer than four, and every value counts once."""
expect = [
    { shape = "65536", that = "global_load_requests <= N // 128 + 64" },
    { shape = "65535", that = "global_load_requests <= N // 128 + 80" },
]
*/
/* gemmlab
exercise = "reduce_peak"
op = "reduce"
require = ["OPERATOR == 0"]  # the sum
grid = "max(1, min(64, ceil_div(N, 512)))"
threads = "256"
again = { N = "blocks", x = "out" }
align = 16
*/

__global__ void my_kernel(long long N, const float* x, float* out)
{
    __shared__ float values[8];  // one a warp
    const unsigned thread = threadIdx.x;
    float own = 0.0f;
    for (long long i = blockIdx.x * 256ll + thread; i < N; i += gridDim.x * 256ll) own += x[i];

    for (int distance = 16; distance > 0; distance /= 2) own += __shfl_down_sync(0xffffffffu, own, distance);
    if (thread % 32 == 0) values[thread / 32] = own;
    __syncthreads();
    if (thread >= 32) return;
    own = thread < 8 ? values[thread] : 0.0f;
    for (int distance = 4; distance > 0; distance /= 2) own += __shfl_down_sync(0xffffffffu, own, distance);
    if (thread == 0) out[blockIdx.x] = own;
}
