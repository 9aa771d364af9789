/* gemmlab
# What gemmlab has to know of this kernel, in TOML. Grid and threads are expressions over M, N, K and the parameters,
# with + - * // %, comparisons, min, max and ceil_div.
summary = "one thread an element of C"
idea = "Say in one sentence why it should be fast."

# Compile-time parameters: those of the template, with defaults; what a tuner may try; what a configuration must obey.
params = { BM = 16, BN = 16 }
tune = { BM = [8, 16, 32], BN = [16, 32] }
require = ["BM * BN <= 1024"]

# How it is launched. ["x", "y", "z"] or "x, y, z"; smem_bytes = "..." where it needs dynamic shared memory.
grid = "ceil_div(M, BM) * ceil_div(N, BN)"
threads = "BN, BM"

# What its counters must show when the emulator runs it, at the given shape.
expect = [{ shape = "64x64x32", that = "global_store_sectors_per_request == 4" }]
*/

// C = alpha * A * B + beta * C in float32, row-major: A is M x K, B is K x N, C is M x N, and rows lie lda, ldb and ldc
// elements apart. Arguments are known by their names; leave out what you do not need (beta, the leading dimensions),
// and the kernel is checked without it.
//
// What `gemmlab check` asks for:
//   - any M, N and K, 0 and extents off the tile included: guard the edges, or restrict what the kernel takes by
//     adding "M % BM == 0" and the like to `require`
//   - beta == 0 does not read C, which may hold NaN; alpha == 0 or K == 0 gives beta * C without reading A and B
//   - products of extents are 64-bit: row * lda overflows an int
// printf prints after the kernel, on the emulator too; or write values to an output array through gemmlab.launch.
template <int BM, int BN>
__global__ void __launch_bounds__(BM * BN) my_kernel(
    int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc)
{
    // Blocks lie in one row, because gridDim.y ends at 65,535. Neighbouring threads take neighbouring columns, so that
    // a warp reads B and writes C in whole sectors.
    const int tiles = (N - 1) / BN + 1;
    const int row = blockIdx.x / tiles * BM + threadIdx.y;
    const int col = blockIdx.x % tiles * BN + threadIdx.x;
    if (row >= M || col >= N) return;

    // Next: keep tiles of A and B in shared memory, then several results a thread in registers. `gemmlab list` shows
    // the kernels that do, each in one file to read.
    float sum = 0.0f;
    if (alpha != 0.0f)
        for (int k = 0; k < K; ++k)
            sum += A[static_cast<long long>(row) * lda + k] * B[static_cast<long long>(k) * ldb + col];

    float result = K > 0 ? alpha * sum : 0.0f;
    float* c = C + static_cast<long long>(row) * ldc + col;
    if (beta != 0.0f) result += beta * *c;
    *c = result;
}
