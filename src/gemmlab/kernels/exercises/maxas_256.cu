/* exercise
task = """
A thread stores its 4 x 4 results one by one, so the lanes of a warp write words that lie 16 bytes apart: four times
the sectors that there are. Turn the results in shared memory first, as maxas does: a warp then stores 32
neighbours, four sectors a request. Watch the banks where you turn."""
expect = [
    { shape = "64x128x64", that = "global_store_sectors_per_request == 4 and global_store_requests == M * N // 32" },
]
*/
/* gemmlab
exercise = "maxas_256"
require = ["M % 64 == 0 and N % 64 == 0 and K % 16 == 0"]
align = 16
grid = "N // 64, M // 64"
threads = "256"
*/

__global__ void my_kernel(int M, int N, int K, const float* A, const float* B, float* C)
{
    __shared__ __align__(16) float As[16][64 + 4], Bs[16][64];
    const int t = threadIdx.x;
    A += blockIdx.y * 64 * K;
    B += blockIdx.x * 64;
    C += blockIdx.y * 64 * N + blockIdx.x * 64;
    const int x = t % 16, y = t / 16;  // 4 x 4 results

    float sums[4][4] = {};
    for (int k0 = 0; k0 < K; k0 += 16) {
        const float4 a = *reinterpret_cast<const float4*>(A + t / 4 * K + k0 + t % 4 * 4);
        const float four[4] = {a.x, a.y, a.z, a.w};
        for (int i = 0; i < 4; ++i) As[t % 4 * 4 + i][t / 4] = four[i];
        *reinterpret_cast<float4*>(&Bs[t / 16][t % 16 * 4]) =
            *reinterpret_cast<const float4*>(B + (k0 + t / 16) * N + t % 16 * 4);
        __syncthreads();
        for (int k = 0; k < 16; ++k)
            for (int i = 0; i < 4; ++i)
                for (int j = 0; j < 4; ++j) sums[i][j] += As[k][y * 4 + i] * Bs[k][x * 4 + j];
        __syncthreads();
    }
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) C[(y * 4 + i) * N + x * 4 + j] = sums[i][j];
}
