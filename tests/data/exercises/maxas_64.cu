/* gemmlab
exercise = "maxas_64"
require = ["M % 64 == 0 and N % 64 == 0 and K % 16 == 0"]
align = 16
grid = "N // 64, M // 64"
threads = "64"
*/

__global__ void __launch_bounds__(64) my_kernel(int M, int N, int K, const float* A, const float* B, float* C)
{
    __shared__ __align__(16) float As[16][64], Bs[16][64];
    // Four steps of k that are stored together have their rows moved by 8 words each.
    const auto place = [](int k, int row) { return row ^ k / 4 * 8; };
    const int t = threadIdx.x, x = t % 8, y = t / 8;  // [0, 8): 8 x 8 results in quarters of 4 x 4
    A += blockIdx.y * 64 * K;
    B += blockIdx.x * 64;
    C += blockIdx.y * 64 * N + blockIdx.x * 64;
    const auto of = [](int place, int i) { return place * 4 + i / 4 * 32 + i % 4; };

    float sums[8][8] = {};
    for (int k0 = 0; k0 < K; k0 += 16) {
        for (int i = 0; i < 4; ++i) {
            const int row = t / 4 + 16 * i, k = t % 4 * 4;
            const float4 a = *reinterpret_cast<const float4*>(A + row * K + k0 + k);
            const float four[4] = {a.x, a.y, a.z, a.w};
            for (int j = 0; j < 4; ++j) As[k + j][place(k + j, row)] = four[j];
            *reinterpret_cast<float4*>(&Bs[t / 16 + 4 * i][t % 16 * 4]) =
                *reinterpret_cast<const float4*>(B + (k0 + t / 16 + 4 * i) * N + t % 16 * 4);
        }
        __syncthreads();
        for (int k = 0; k < 16; ++k) {
            float a[8], b[8];
            for (int i = 0; i < 8; ++i) a[i] = As[k][place(k, of(y, i))], b[i] = Bs[k][of(x, i)];
            for (int i = 0; i < 8; ++i)
                for (int j = 0; j < 8; ++j) sums[i][j] += a[i] * b[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < 8; ++i)
        for (int j = 0; j < 8; ++j) C[of(y, i) * N + of(x, j)] = sums[i][j];
}
