/* exercise
task = """
Tensor cores truncate what a sum does not hold, so sums of parts must not stay in them for all of k. This kernel waits
after 16 steps of k, for three products, and adds both sums to a sum in registers. After 64 steps the largest error of
random numbers is still below that of a chain of float32 multiply-adds: leave the sums in the tensor cores for a whole
tile, wait once, and add them once."""
untried = ["wide", "special", "subnormal", "huge"]
expect = [
    { shape = "64x64x128", that = "executed_FFMA == 4 * M * N * K // (64 * 128)" },
    { shape = "64x64x128", that = "executed_HGMMA == 3 * 4 * (M // 64) * (N // 64) * (K // 16)" },
]
*/
/* gemmlab
exercise = "f16x3"
arch = "sm_90a"
precision = "f16x3"
require = ["M % 64 == 0 and N % 64 == 0 and K % 64 == 0"]
grid = "N // 64, M // 64"
threads = "128"
*/

#include <cuda_fp16.h>

#include "wgmma.cuh"

// Tiles have rows of 64 halves, 128 bytes, along k. Unit u of 16 bytes of row r lies at unit u ^ r % 8: the swizzle
// that the descriptors of wgmma.cuh name.
__device__ inline int place(int row, int k) { return row * 64 + ((k / 8) ^ (row % 8)) * 8 + k % 8; }

// The two parts of an element; the second one is 2048 times what the first one leaves.
__device__ inline void split(half* high, half* low, int row, int k, float x)
{
    const half first = __float2half_rn(x);
    high[place(row, k)] = first;
    low[place(row, k)] = __float2half_rn((x - __half2float(first)) * 2048);
}

__global__ void __launch_bounds__(128) my_kernel(int M, int N, int K, const float* A, const float* B, float* C)
{
    __shared__ __align__(1024) half a_parts[2][64 * 64], b_parts[2][64 * 64];  // B transposed: a row is a column of B
    const Rows a1 = rows_of_128_bytes(shared_address(a_parts[0])), a2 = rows_of_128_bytes(shared_address(a_parts[1]));
    const Rows b1 = rows_of_128_bytes(shared_address(b_parts[0])), b2 = rows_of_128_bytes(shared_address(b_parts[1]));
    const int t = threadIdx.x;
    const long long rows = K, cols = N;
    A += blockIdx.y * 64 * rows;
    B += blockIdx.x * 64;
    C += blockIdx.y * 64 * cols + blockIdx.x * 64;

    float sums[32] = {};
    for (int k0 = 0; k0 < K; k0 += 64) {
        for (int i = t; i < 64 * 64; i += 128) {
            split(a_parts[0], a_parts[1], i / 64, i % 64, A[i / 64 * rows + k0 + i % 64]);
            split(b_parts[0], b_parts[1], i % 64, i / 64, B[(k0 + i / 64) * cols + i % 64]);
        }
        publish_to_copies();  // wgmma reads shared memory as they do
        __syncthreads();
        for (int k = 0; k < 128; k += 32) {  // bytes: 16 halves
            float high[32], low[32];
            begin_products();
            multiply_f16(high, further(a1, k), further(b1, k), false);
            multiply_f16(low, further(a1, k), further(b2, k), false);
            multiply_f16(low, further(a2, k), further(b1, k), true);
            commit_products();
            wait_for_products<0>();
            pin(high);
            pin(low);
            for (int i = 0; i < 32; ++i) sums[i] += fmaf(low[i], 1.0f / 2048, high[i]);
        }
        __syncthreads();
    }

    // wgmma.cuh says which sums a lane has.
    C += (t / 32 * 16 + t % 32 / 4) * cols + 2 * (t % 4);
    for (int i = 0; i < 32; ++i) C[i / 2 % 2 * 8 * cols + i / 4 * 8 + i % 2] = sums[i];
}
