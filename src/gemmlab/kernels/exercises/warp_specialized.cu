/* exercise
task = """
Eight warps multiply, and one of their threads also asks for boxes: all have to meet at a barrier of the block in each
step before it may ask again. Add a ninth warp that only copies, and a second pair of barriers, `empty`, at which the 256
threads that multiply arrive when they have read a stage. The copying thread waits there and not for the block, so that
after the beginning no warp meets a barrier of the block."""
expect = [
    { shape = "64x96x128", that = "executed_UTMALDG == 2 * (M // 32) * (N // 32) * (K // 32) and barriers <= 9 * (M // 32) * (N // 32)" },
]
*/
/* gemmlab
exercise = "warp_specialized"
arch = "sm_90a"
require = ["M % 32 == 0 and N % 32 == 0 and K % 32 == 0"]
grid = "N // 32, M // 32"
threads = "256"

[maps]
A = { type = "float32", box = "32, 32" }
B = { type = "float32", box = "32, 32" }
*/

#include "tensor_copy.cuh"

__global__ void __launch_bounds__(256) my_kernel(
    int M, int N, int K, const __grid_constant__ CUtensorMap A, const __grid_constant__ CUtensorMap B, float* C)
{
    __shared__ __align__(128) float As[2][32][32], Bs[2][32][32];
    __shared__ unsigned long long full[2];
    const int t = threadIdx.x, x = t % 32, y = t / 32;
    const int row = blockIdx.y * 32, col = blockIdx.x * 32, steps = K / 32;
    if (t == 0) {
        for (int s = 0; s < 2; ++s) init_barrier(shared_address(&full[s]), 1);
        publish_barriers();
    }
    __syncthreads();

    const auto ask = [&](int step) {
        if (t != 0 || step >= steps) return;
        const int s = step % 2;
        const SharedAddress barrier = shared_address(&full[s]);
        arrive_and_expect(barrier, sizeof As[s] + sizeof Bs[s]);
        copy_box(shared_address(As[s]), A, step * 32, row, barrier);
        copy_box(shared_address(Bs[s]), B, col, step * 32, barrier);
    };
    ask(0);
    float sums[4] = {};
    for (int step = 0; step < steps; ++step) {
        const int s = step % 2;
        ask(step + 1);
        wait(shared_address(&full[s]), step / 2 % 2);
        for (int k = 0; k < 32; ++k)
            for (int i = 0; i < 4; ++i) sums[i] += As[s][y + 8 * i][k] * Bs[s][k][x];
        __syncthreads();  // all have read the stage that thread 0 asks for next
    }
    for (int i = 0; i < 4; ++i) C[(row + y + 8 * i) * static_cast<long long>(N) + col + x] = sums[i];
}
