/* exercise
task = """
Somebody has taken a barrier away to save time. `gemmlab check` shows what it protected. Mend the race without
putting a barrier back: a tile that is written must not be one that anybody still reads."""
expect = [
    { shape = "128x64x128", that = "barriers <= (K // 16 + 1) * (M // 64) * (N // 64) * 8" },
]
*/
/* gemmlab
exercise = "warp_tile_double_buffer"
require = ["M % 64 == 0 and N % 64 == 0 and K % 16 == 0"]
align = 16
grid = "N // 64, M // 64"
threads = "256"
*/

__global__ void my_kernel(int M, int N, int K, const float* A, const float* B, float* C)
{
    __shared__ __align__(16) float As[64][16], Bs[16][64];
    const int t = threadIdx.x;
    A += blockIdx.y * 64 * K;
    B += blockIdx.x * 64;
    C += blockIdx.y * 64 * N + blockIdx.x * 64;
    const int x = t % 16, y = t / 16 * 4;  // 4 x 4 results

    float sums[4][4] = {};
    for (int k0 = 0; k0 < K; k0 += 16) {
        *reinterpret_cast<float4*>(&As[t / 4][t % 4 * 4]) =
            *reinterpret_cast<const float4*>(A + t / 4 * K + k0 + t % 4 * 4);
        *reinterpret_cast<float4*>(&Bs[t / 16][t % 16 * 4]) =
            *reinterpret_cast<const float4*>(B + (k0 + t / 16) * N + t % 16 * 4);
        __syncthreads();
        for (int k = 0; k < 16; ++k)
            for (int i = 0; i < 4; ++i)
                for (int j = 0; j < 4; ++j) sums[i][j] += As[y + i][k] * Bs[k][x + 16 * j];
    }
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) C[(y + i) * N + x + 16 * j] = sums[i][j];
}
