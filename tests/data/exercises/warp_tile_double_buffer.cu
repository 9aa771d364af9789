/* gemmlab
exercise = "warp_tile_double_buffer"
require = ["M % 64 == 0 and N % 64 == 0 and K % 16 == 0"]
align = 16
grid = "N // 64, M // 64"
threads = "256"
*/

__global__ void my_kernel(int M, int N, int K, const float* A, const float* B, float* C)
{
    __shared__ __align__(16) float As[2][64][16], Bs[2][16][64];
    const int t = threadIdx.x;
    A += blockIdx.y * 64 * K;
    B += blockIdx.x * 64;
    C += blockIdx.y * 64 * N + blockIdx.x * 64;
    const int x = t % 16, y = t / 16 * 4;  // 4 x 4 results

    float sums[4][4] = {};
    for (int k0 = 0, now = 0; k0 < K; k0 += 16, now ^= 1) {
        *reinterpret_cast<float4*>(&As[now][t / 4][t % 4 * 4]) =
            *reinterpret_cast<const float4*>(A + t / 4 * K + k0 + t % 4 * 4);
        *reinterpret_cast<float4*>(&Bs[now][t / 16][t % 16 * 4]) =
            *reinterpret_cast<const float4*>(B + (k0 + t / 16) * N + t % 16 * 4);
        __syncthreads();  // everybody is done with the tiles before the last ones, which the next turn writes over
        for (int k = 0; k < 16; ++k)
            for (int i = 0; i < 4; ++i)
                for (int j = 0; j < 4; ++j) sums[i][j] += As[now][y + i][k] * Bs[now][k][x + 16 * j];
    }
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) C[(y + i) * N + x + 16 * j] = sums[i][j];
}
