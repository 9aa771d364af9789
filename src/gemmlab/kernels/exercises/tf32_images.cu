/* exercise
task = """
Each block turns B, rounds and swizzles its tiles again, though all blocks of a row and of a column want the same. Let a
launch before this one do it once: `phases = "2"` and `workspace = "4 * (M + N) * K"` in the header, and, with the grid
of each phase, `args = "M, N, K, A, B, C, workspace, phase"` for a kernel that takes `void* workspace, int phase`,
too. In phase 0 a block writes one tile as shared memory wants it, in phase 1 thread 0 asks for each tile with one bulk
copy (copy_bulk of mbarrier.cuh), which a barrier in shared memory counts."""
expect = [
    { shape = "128x256x64", that = "global_load_requests <= (M * K + K * N) // 32" },
    { shape = "128x256x64", says = "bulk copies (UBLKCP)", that = "executed_UBLKCP == 2 * (M // 64) * (N // 128) * (K // 32)" },
]
*/
/* gemmlab
exercise = "tf32_images"
arch = "sm_90a"
precision = "tf32"
require = ["M % 64 == 0 and N % 128 == 0 and K % 32 == 0"]
grid = "N // 128, M // 64"
threads = "128"
*/

#include "tf32.cuh"
#include "wgmma.cuh"

// Tiles have rows of 32 floats, 128 bytes, along k. Unit u of 16 bytes of row r lies at unit u ^ r % 8: the swizzle
// that the descriptors of wgmma.cuh name.
__device__ inline int place(int row, int k) { return row * 32 + ((k / 4) ^ (row % 8)) * 4 + k % 4; }

__global__ void __launch_bounds__(128) my_kernel(int M, int N, int K, const float* A, const float* B, float* C)
{
    __shared__ __align__(1024) unsigned As[64 * 32], Bs[128 * 32];  // B is transposed: a column of it is a row of Bs
    const Rows a = rows_of_128_bytes(shared_address(As)), b = rows_of_128_bytes(shared_address(Bs));
    const int t = threadIdx.x;
    const long long rows = K, cols = N;
    A += blockIdx.y * 64 * rows;
    B += blockIdx.x * 128;
    C += blockIdx.y * 64 * cols + blockIdx.x * 128;

    float sums[64] = {};
    for (int k0 = 0; k0 < K; k0 += 32) {
        for (int i = t; i < 64 * 32; i += 128) As[place(i / 32, i % 32)] = to_tf32(A[i / 32 * rows + k0 + i % 32]);
        for (int i = t; i < 128 * 32; i += 128)
            Bs[place(i % 128, i / 128)] = to_tf32(B[(k0 + i / 128) * cols + i % 128]);
        publish_to_copies();  // wgmma reads shared memory as they do
        __syncthreads();
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
