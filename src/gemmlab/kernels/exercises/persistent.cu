/* exercise
task = """
Each block computes one tile, so each begins with barriers to set up and an empty ring. Let 4 blocks stay and take every
fourth tile: a grid of at most 4, a loop over tiles in both roles, and stages counted on from tile to tile, so that the
warp that copies fills the ring for the next tile while the others still store this one."""
expect = [
    { shape = "128x96x64", that = "executed_UTMALDG == 2 * (M // 32) * (N // 32) * (K // 32) and barriers <= 4 * 9" },
]
*/
/* gemmlab
exercise = "persistent"
arch = "sm_90a"
require = ["M % 32 == 0 and N % 32 == 0 and K % 32 == 0"]
grid = "N // 32, M // 32"
threads = "288"

[maps]
A = { type = "float32", box = "32, 32" }
B = { type = "float32", box = "32, 32" }
*/

#include "tensor_copy.cuh"

__global__ void __launch_bounds__(288) my_kernel(
    int M, int N, int K, const __grid_constant__ CUtensorMap A, const __grid_constant__ CUtensorMap B, float* C)
{
    __shared__ __align__(128) float As[2][32][32], Bs[2][32][32];
    __shared__ unsigned long long full[2], empty[2];
    const int t = threadIdx.x, x = t % 32, y = t / 32;
    const int row = blockIdx.y * 32, col = blockIdx.x * 32, steps = K / 32;
    if (t == 0) {
        for (int s = 0; s < 2; ++s) {
            init_barrier(shared_address(&full[s]), 1);
            init_barrier(shared_address(&empty[s]), 256);
        }
        publish_barriers();
    }
    __syncthreads();

    if (y == 8) {  // the warp that copies
        for (int step = 0; step < steps && x == 0; ++step) {
            const int s = step % 2;
            const SharedAddress barrier = shared_address(&full[s]);
            wait(shared_address(&empty[s]), step / 2 % 2 ^ 1);
            arrive_and_expect(barrier, sizeof As[s] + sizeof Bs[s]);
            copy_box(shared_address(As[s]), A, step * 32, row, barrier);
            copy_box(shared_address(Bs[s]), B, col, step * 32, barrier);
        }
        return;
    }
    float sums[4] = {};
    for (int step = 0; step < steps; ++step) {
        const int s = step % 2;
        wait(shared_address(&full[s]), step / 2 % 2);
        for (int k = 0; k < 32; ++k)
            for (int i = 0; i < 4; ++i) sums[i] += As[s][y + 8 * i][k] * Bs[s][k][x];
        arrive(shared_address(&empty[s]));
    }
    for (int i = 0; i < 4; ++i) C[(row + y + 8 * i) * static_cast<long long>(N) + col + x] = sums[i];
}
