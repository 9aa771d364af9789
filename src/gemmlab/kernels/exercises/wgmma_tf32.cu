/* exercise
task = """
A warpgroup, four warps, multiplies 64 x 64 x 8 with one instruction (wgmma) and reads both operands from shared memory.
This kernel computes 64 x 128 with two of them, so the tensor cores read each piece of A twice. One instruction can be
64 x 128 x 8: give multiply_tf32 one array of 64 sums, and describe all 128 rows of B's tile by one descriptor."""
expect = [
    { shape = "64x128x64", that = "executed_HGMMA == 4 * (M // 64) * (N // 128) * (K // 8)" },
]
*/
/* gemmlab
exercise = "wgmma_tf32"
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

    float left[32] = {}, right[32] = {};
    for (int k0 = 0; k0 < K; k0 += 32) {
        for (int i = t; i < 64 * 32; i += 128) As[place(i / 32, i % 32)] = to_tf32(A[i / 32 * rows + k0 + i % 32]);
        for (int i = t; i < 128 * 32; i += 128)
            Bs[place(i % 128, i / 128)] = to_tf32(B[(k0 + i / 128) * cols + i % 128]);
        publish_to_copies();  // wgmma reads shared memory as they do
        __syncthreads();
        begin_products();
        for (int k = 0; k < 32; k += 8) {
            multiply_tf32(left, further(a, 4 * k), further(b, 4 * k), true);
            multiply_tf32(right, further(a, 4 * k), further(b, 64 * 128 + 4 * k), true);
        }
        commit_products();
        wait_for_products<0>();
        __syncthreads();
    }
    pin(left);
    pin(right);

    // wgmma.cuh says which sums a lane has.
    C += (t / 32 * 16 + t % 32 / 4) * cols + 2 * (t % 4);
    for (int i = 0; i < 32; ++i) {
        float* c = C + i / 2 % 2 * 8 * cols + i / 4 * 8 + i % 2;
        c[0] = left[i];
        c[64] = right[i];
    }
}
