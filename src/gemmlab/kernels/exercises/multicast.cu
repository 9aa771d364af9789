/* exercise
task = """
The two blocks of a cluster lie beside each other and copy the same tile of A, each for itself. Let the first of them
(`blockIdx.x % 2 == 0`) copy it to both: copy_box_to of tensor_copy.cuh takes a bit for each block, puts the box at the
same place in each, and reports it to the barrier at the same place. So each block still expects both tiles, and no
block may begin the next step before both have read: cluster_barrier is there for that."""
expect = [
    { shape = "64x64x128", says = "boxes copied (UTMALDG)", that = "executed_UTMALDG == 3 * (M // 32) * (N // 64) * (K // 32)" },
    { shape = "64x64x128", says = "boxes copied to both blocks", that = "executed_UTMALDG_MULTICAST == (M // 32) * (N // 64) * (K // 32)" },
]
*/
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
            copy_box(shared_address(As), A, k0, row, barrier);
            copy_box(shared_address(Bs), B, col, k0, barrier);
        }
        wait(barrier, k0 / 32 % 2);
        for (int k = 0; k < 32; ++k)
            for (int i = 0; i < 4; ++i) sums[i] += As[y + 8 * i][k] * Bs[k][x];
        cluster_barrier();  // both blocks have read
    }
    for (int i = 0; i < 4; ++i) C[(row + y + 8 * i) * static_cast<long long>(N) + col + x] = sums[i];
}
