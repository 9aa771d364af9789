/* exercise
task = """
Each thread sums a row here, so the lanes of a warp read 32 rows at once, and each load touches 32 sectors. Let a warp
sum a row: its lanes read neighbouring elements, 32 at a time, and add their sums by shuffles. The grid needs a warp for
each row then; rows are s0 elements apart, results o0."""
expect = [
    { shape = "64x1024x1", that = "global_load_sectors_per_request == 4 and global_load_requests == 64 * 1024 // 32" },
    { shape = "64x1024x1", that = "barriers == 0" },
]
*/
/* gemmlab
exercise = "sum_rows"
op = "sums"
require = ["n1 * n2 * n3 == 1 and k1 * k2 == 1 and t0 == 1"]
grid = "ceil_div(n0, 256)"
threads = "256"
args = "n0, s0, o0, k0, x, out"
*/

__global__ void my_kernel(long long n0, long long s0, long long o0, long long k0, const float* x, float* out)
{
    const long long row = blockIdx.x * 256ll + threadIdx.x;
    if (row >= n0) return;
    x += row * s0;
    float sum = 0.0f;
    for (long long i = 0; i < k0; ++i) sum += x[i];
    out[row * o0] = sum;
}
