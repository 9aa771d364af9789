/* exercise
task = """
The next tiles wait in registers until there is room for them in shared memory. Let cp.async (in CUDA C++
__pipeline_memcpy_async, or inline PTX) bring them to the second buffer, 16 bytes a copy: no word of A or B goes
through a register on its way in."""
expect = [
    { shape = "128x64x128", that = "global_load_requests == 0 and shared_store_requests == 0" },
    { shape = "128x64x128", that = "async_copy_requests == (M * K * (N // 64) + K * N * (M // 64)) // 128" },
    { shape = "128x64x128", that = "barriers <= (K // 16 + 1) * (M // 64) * (N // 64) * 8" },
]
*/
/* gemmlab
exercise = "async_copy"
require = ["M % 64 == 0 and N % 64 == 0 and K % 16 == 0"]
align = 16
arch = "sm_80"
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
    const auto a_of = [&](int k0) { return *reinterpret_cast<const float4*>(A + t / 4 * K + k0 + t % 4 * 4); };
    const auto b_of = [&](int k0) { return *reinterpret_cast<const float4*>(B + (k0 + t / 16) * N + t % 16 * 4); };

    float sums[4][4] = {};
    float4 a_next = {}, b_next = {};
    if (K > 0) a_next = a_of(0), b_next = b_of(0);
    for (int k0 = 0, now = 0; k0 < K; k0 += 16, now ^= 1) {
        *reinterpret_cast<float4*>(&As[now][t / 4][t % 4 * 4]) = a_next;
        *reinterpret_cast<float4*>(&Bs[now][t / 16][t % 16 * 4]) = b_next;
        __syncthreads();
        if (k0 + 16 < K) a_next = a_of(k0 + 16), b_next = b_of(k0 + 16);
        for (int k = 0; k < 16; ++k)
            for (int i = 0; i < 4; ++i)
                for (int j = 0; j < 4; ++j) sums[i][j] += As[now][y + i][k] * Bs[now][k][x + 16 * j];
    }
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) C[(y + i) * N + x + 16 * j] = sums[i][j];
}
