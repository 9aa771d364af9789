/* gemmlab
exercise = "tf32_images"
arch = "sm_90a"
precision = "tf32"
require = ["M % 64 == 0 and N % 128 == 0 and K % 32 == 0"]
phases = "2"
workspace = "4 * (M + N) * K"
args = "M, N, K, A, B, C, workspace, phase"
grid = "(M // 64 + N // 128) * (K // 32) if phase == 0 else N // 128, 1 if phase == 0 else M // 64"
threads = "128"
*/

#include "tf32.cuh"
#include "wgmma.cuh"

// Tiles have rows of 32 floats, 128 bytes, along k. Unit u of 16 bytes of row r lies at unit u ^ r % 8: the swizzle
// that the descriptors of wgmma.cuh name.
__device__ inline int place(int row, int k) { return row * 32 + ((k / 4) ^ (row % 8)) * 4 + k % 4; }

__global__ void __launch_bounds__(128) my_kernel(
    int M, int N, int K, const float* A, const float* B, float* C, void* workspace, int phase)
{
    constexpr int A_TILE = 64 * 32, B_TILE = 128 * 32;  // words
    const int t = threadIdx.x, steps = K / 32;
    const long long rows = K, cols = N;
    unsigned *a_tiles = static_cast<unsigned*>(workspace), *b_tiles = a_tiles + M * rows;  // by strip, then by step
    if (phase == 0) {
        const int a_count = M / 64 * steps, tile = blockIdx.x;
        if (tile < a_count) {
            A += tile / steps * 64 * rows + tile % steps * 32;
            a_tiles += tile * static_cast<long long>(A_TILE);
            for (int i = t; i < A_TILE; i += 128) a_tiles[place(i / 32, i % 32)] = to_tf32(A[i / 32 * rows + i % 32]);
        } else {
            const int other = tile - a_count;
            B += other % steps * 32 * cols + other / steps * 128;
            b_tiles += other * static_cast<long long>(B_TILE);
            for (int i = t; i < B_TILE; i += 128) b_tiles[place(i % 128, i / 128)] = to_tf32(B[i / 128 * cols + i % 128]);
        }
        return;
    }

    __shared__ __align__(1024) unsigned As[A_TILE], Bs[B_TILE];
    __shared__ unsigned long long full;
    const Rows a = rows_of_128_bytes(shared_address(As)), b = rows_of_128_bytes(shared_address(Bs));
    const SharedAddress barrier = shared_address(&full);
    if (t == 0) {
        init_barrier(barrier, 1);
        publish_barriers();
    }
    __syncthreads();
    C += blockIdx.y * 64 * cols + blockIdx.x * 128;

    float sums[64] = {};
    for (int step = 0; step < steps; ++step) {
        if (t == 0) {
            arrive_and_expect(barrier, sizeof As + sizeof Bs);
            const long long a_at = blockIdx.y * steps + step, b_at = blockIdx.x * steps + step;
            copy_bulk(shared_address(As), a_tiles + a_at * A_TILE, sizeof As, barrier);
            copy_bulk(shared_address(Bs), b_tiles + b_at * B_TILE, sizeof Bs, barrier);
        }
        wait(barrier, step % 2);
        begin_products();
        for (int k = 0; k < 32; k += 8) multiply_tf32(sums, further(a, 4 * k), further(b, 4 * k), true);
        commit_products();
        wait_for_products<0>();
        __syncthreads();
    }
    pin(sums);

    // wgmma.cuh says which sums a lane has.
    C += (t / 32 * 16 + t % 32 / 4) * cols + 2 * (t % 4);
    for (int i = 0; i < 64; ++i) C[i / 2 % 2 * 8 * cols + i / 4 * 8 + i % 2] = sums[i];
}
