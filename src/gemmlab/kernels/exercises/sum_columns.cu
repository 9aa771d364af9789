/* exercise
task = """
A block sums a column here, and its threads read elements t0 apart, each from another sector. Columns lie beside each
other: let a block sum 32 of them, a lane each. Its eight warps share the rows, warp w those from w on, 8 apart, and the
first one adds what the others leave in shared memory, after one barrier."""
expect = [
    { shape = "1x1024x64", that = "global_load_sectors_per_request == 4 and global_load_requests == 64 * 1024 // 32" },
    { shape = "1x1024x64", says = "barriers, a warp's each", that = "barriers == 8 * 2" },
]
*/
/* gemmlab
exercise = "sum_columns"
op = "sums"
require = ["n1 * n2 * n3 == 1 and k1 * k2 == 1 and s0 == 1"]
grid = "n0"
threads = "256"
args = "n0, s0, o0, k0, t0, x, out"
*/

__global__ void my_kernel(
    long long n0, long long s0, long long o0, long long k0, long long t0, const float* x, float* out)
{
    __shared__ float parts[256];
    const int thread = threadIdx.x;
    x += blockIdx.x * s0;
    float sum = 0.0f;
    for (long long i = thread; i < k0; i += 256) sum += x[i * t0];
    parts[thread] = sum;
    __syncthreads();
    for (int left = 128; left > 0; left /= 2) {
        if (thread < left) parts[thread] += parts[thread + left];
        __syncthreads();
    }
    if (thread == 0) out[blockIdx.x * o0] = parts[0];
}
