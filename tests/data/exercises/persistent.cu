/* gemmlab
exercise = "persistent"
arch = "sm_90a"
require = ["M % 32 == 0 and N % 32 == 0 and K % 32 == 0"]
grid = "min(4, N // 32 * (M // 32))"
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
    const int across = N / 32, tiles = M / 32 * across, steps = K / 32;
    if (t == 0) {
        for (int s = 0; s < 2; ++s) {
            init_barrier(shared_address(&full[s]), 1);
            init_barrier(shared_address(&empty[s]), 256);
        }
        publish_barriers();
    }
    __syncthreads();

    if (y == 8) {  // the warp that copies
        int used = 0;  // stages so far, of all tiles
        for (int tile = blockIdx.x; tile < tiles && x == 0; tile += gridDim.x)
            for (int step = 0; step < steps; ++step, ++used) {
                const int s = used % 2;
                const SharedAddress barrier = shared_address(&full[s]);
                wait(shared_address(&empty[s]), used / 2 % 2 ^ 1);
                arrive_and_expect(barrier, sizeof As[s] + sizeof Bs[s]);
                copy_box(shared_address(As[s]), A, step * 32, tile / across * 32, barrier);
                copy_box(shared_address(Bs[s]), B, tile % across * 32, step * 32, barrier);
            }
        return;
    }
    int used = 0;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        float sums[4] = {};
        for (int step = 0; step < steps; ++step, ++used) {
            const int s = used % 2;
            wait(shared_address(&full[s]), used / 2 % 2);
            for (int k = 0; k < 32; ++k)
                for (int i = 0; i < 4; ++i) sums[i] += As[s][y + 8 * i][k] * Bs[s][k][x];
            arrive(shared_address(&empty[s]));
        }
        const long long row = tile / across * 32 + y, col = tile % across * 32 + x;
        for (int i = 0; i < 4; ++i) C[(row + 8 * i) * N + col] = sums[i];
    }
}
