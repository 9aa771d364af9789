/* gemmlab
summary = "TF32 on Hopper's tensor cores: two warpgroups multiply straight from shared memory"
idea = "One instruction of four warps multiplies 64 x 128 x 8 and reads an operand from shared memory by itself: no registers, no loads for it."
source = "NVIDIA, PTX ISA, asynchronous warpgroup instructions (wgmma.mma_async)"
op = "gemm"
after = "mma_tf32_pipelined"
arch = "sm_90a"
precision = "tf32"
transposes = ["nn", "nt", "tt"]
grid = "ceil_div(N, BY) * ceil_div(M, 128) if TRANS_A else ceil_div(M, BY) * ceil_div(N, 128)"
threads = 256
smem_bytes = "128 * (128 + BY)"
require = ["BY == 64 or BY == 128 or BY == 256", "GROUP >= 1"]
expect = [
    # A warpgroup multiplies 64 x BY x 8 with an instruction of four warps.
    { shape = "256x256x64", that = "executed_HGMMA * 64 * BY * 8 == 4 * M * N * K" },
    # X goes to registers once, two words a lane, without a bank conflict; Y goes from shared memory to the tensor cores.
    { shape = "256x256x64", that = "64 * BY * shared_load_requests == M * N * K and shared_load_excess == 0" },
    { shape = "256x256x64", that = "global_load_sectors_per_request == 16 and shared_store_excess == 0" },
    # Whole sectors, though the sums are those of C's transpose.
    { shape = "256x256x64", that = "8 * global_store_sectors == M * N and global_store_sectors_per_request == 8" },
]

[params]
BY = 128    # of the shared operand's rows in a tile; the other one has 128
GROUP = 16  # tiles across a strip of the order in which blocks walk C

[tune]
BY = [64, 128, 256]
GROUP = [8, 16]

*/

#include "tf32_copy.cuh"

template <int BY, int GROUP, bool TRANS_A, bool TRANS_B>
__global__ void __launch_bounds__(256, BY <= 128 ? 2 : 1) wgmma_tf32(
    int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc)
{
    extern __shared__ __align__(1024) char shared[];
    constexpr bool X_IS_A = TRANS_A && TRANS_B, X_ALONG = !TRANS_A && TRANS_B;
    const int rows_x = X_IS_A ? M : N, rows_y = X_IS_A ? N : M;
    const int depth = sum_depth(K, alpha);
    const TileOfXY<BY, GROUP> tile(rows_x, rows_y);
    const Tf32Copy<TF32_ROWS, X_ALONG, 256> x_copy(X_IS_A ? A : B, X_IS_A ? lda : ldb, tile.x, rows_x);
    const Tf32Copy<BY, true, 256> y_copy(X_IS_A ? B : A, X_IS_A ? ldb : lda, tile.y, rows_y);
    const Tf32Operand<X_ALONG> operand(threadIdx.x / 128);
    const Tf32Stage<BY> stage = {shared_address(shared)};

    float sums[BY / 2] = {};
    for (int k = 0; k < depth; k += TF32_DEPTH) {
        x_copy.copy(stage.x, k, depth);
        y_copy.copy(stage.y(), k, depth);
        publish_to_copies();  // wgmma reads shared memory as they do
        __syncthreads();
        unsigned x[TF32_DEPTH / 8][4];
        operand.load(x, stage.x);
        multiply_stage(sums, x, stage.y(), k > 0);
        wait_for_products<0>();
        __syncthreads();
    }
    pin(sums);
    store_sums<X_IS_A>(tile, M, N, operand, alpha, sums, beta, C, ldc);
}
