/* exercise
task = """
Eight rows of C: the block's eight warps share a row of threads each, bring tiles together and meet at two barriers
for every 32 steps of k. Give each warp a share of k instead: its lanes take neighbouring columns, each with the
sums of all eight rows, and nothing stops a warp before its sums are done. Then the block adds the eight sums of
each result."""
expect = [
    { shape = "8x128x512", that = "barriers <= 8 * (N // 32)" },
    { shape = "8x128x512", that = "global_store_requests == M * N // 32" },
]
*/
/* gemmlab
exercise = "narrow_strip"
require = ["M == 8 and N % 32 == 0 and K % 32 == 0"]
grid = "N // 32"
threads = "32, 8"
*/

__global__ void my_kernel(int M, int N, int K, const float* A, const float* B, float* C)
{
    __shared__ float As[8][32], Bs[32][32];
    const int x = threadIdx.x, y = threadIdx.y;
    const int col = blockIdx.x * 32 + x;

    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += 32) {
        As[y][x] = A[y * K + k0 + x];
        for (int i = 0; i < 32; i += 8) Bs[y + i][x] = B[(k0 + y + i) * N + col];
        __syncthreads();
        for (int k = 0; k < 32; ++k) sum += As[y][k] * Bs[k][x];
        __syncthreads();
    }
    C[y * N + col] = sum;
}
