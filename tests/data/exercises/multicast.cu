/* gemmlab
exercise = "multicast"
arch = "sm_90a"
require = ["M % 32 == 0 and N % 64 == 0 and K % 32 == 0"]
grid = "N // 32, M // 32"
threads = "256"

[maps]
A = { type = "float32", box = "32, 32" }
B = { type = "float32", box = "32, 32" }
*/

#include "tensor_copy.cuh"

__global__ void __launch_bounds__(256) __cluster_dims__(2) my_kernel(
    int M, int N, int K, const __grid_constant__ CUtensorMap A, const __grid_constant__ CUtensorMap B, float* C)
{
    __shared__ __align__(128) float As[32][32], Bs[32][32];
    __shared__ unsigned long long full;
    const int t = threadIdx.x, x = t % 32, y = t / 32;
    const int row = blockIdx.y * 32, col = blockIdx.x * 32;
    const SharedAddress barrier = shared_address(&full);
    if (t == 0) {
        init_barrier(barrier, 1);
        publish_barriers();
    }
    cluster_barrier();  // both blocks have their barrier

    float sums[4] = {};
    for (int k0 = 0; k0 < K; k0 += 32) {
        if (t == 0) {
            arrive_and_expect(barrier, sizeof As + sizeof Bs);
            if (blockIdx.x % 2 == 0) copy_box_to(0b11, shared_address(As), A, k0, row, barrier);
            copy_box(shared_address(Bs), B, col, k0, barrier);
        }
        wait(barrier, k0 / 32 % 2);
        for (int k = 0; k < 32; ++k)
            for (int i = 0; i < 4; ++i) sums[i] += As[y + 8 * i][k] * Bs[k][x];
        cluster_barrier();  // both blocks have read
    }
    for (int i = 0; i < 4; ++i) C[(row + y + 8 * i) * static_cast<long long>(N) + col + x] = sums[i];
}
