/* gemmlab
summary = "TF32 on Hopper's tensor cores, blocks that stay and compute tile after tile"
idea = "The producer copies the next tile's first stages while consumers store a tile: no block begins with an empty ring."
source = "NVIDIA, CUTLASS 3.x, persistent warp-specialized kernels for Hopper"
op = "gemm"
after = "mma_tf32_pipelined"
arch = "sm_90a"
precision = "tf32"
transposes = ["nn", "nt", "tt"]
args = "M, N, K, alpha, beta, C, ldc, tensor_map(A), tensor_map(B)"
grid = "min(BLOCKS, ceil_div(N, BY) * ceil_div(M, 128) if TRANS_A else ceil_div(M, BY) * ceil_div(N, 128))"
threads = 384
smem_bytes = "196608 + 16 * (1536 // (128 + BY))"
steps = """32 * ceil_div(K, 32) * ceil_div(ceil_div(N, BY) * ceil_div(M, 128) if TRANS_A else \
    ceil_div(M, BY) * ceil_div(N, 128), max(1, blocks))"""
require = ["BY == 64 or BY == 128 or BY == 256", "GROUP >= 1 and 1 <= BLOCKS <= 4096"]

[params]
BY = 256      # of the shared operand's rows in a tile; the other one has 128
GROUP = 16    # tiles across a strip of the order in which blocks walk C
BLOCKS = 132  # as many as run at the same time, one a multiprocessor

[tune]
BY = [64, 128, 256]
GROUP = [8, 16]

[maps]
A = { type = "tfloat32", box = "32 if TRANS_A else BY, 32", swizzle = 128 }
B = { type = "tfloat32", box = "BY if TRANS_A else 128 if TRANS_B else 32, 32", swizzle = 128 }
*/

#include "tf32_ring.cuh"

template <int BY, int GROUP, bool TRANS_A, bool TRANS_B>
__global__ void __launch_bounds__(384, 1) persistent(
    int M, int N, int K, float alpha, float beta, float* C, int ldc, const __grid_constant__ CUtensorMap A,
    const __grid_constant__ CUtensorMap B)
{
    extern __shared__ __align__(1024) char shared[];
    constexpr bool X_IS_A = TRANS_A && TRANS_B, X_ALONG = !TRANS_A && TRANS_B;
    const CUtensorMap &X = X_IS_A ? A : B, &Y = X_IS_A ? B : A;
    const int rows_x = X_IS_A ? M : N, rows_y = X_IS_A ? N : M;
    const int stages = 2 * ceil_div(sum_depth(K, alpha), 2 * TF32_DEPTH);

    if (threadIdx.x == 0) {
        prefetch_map(X);
        prefetch_map(Y);
    }
    Tf32Ring<BY, X_ALONG> ring(shared);
    ring.open();
    if (threadIdx.x < 128) {  // the producer: one thread copies, the others give their registers
        give_back_registers<40>();
        if (threadIdx.x == 0)
            for (Tf32Tile<BY, GROUP> tile(rows_x, rows_y); tile.exists(); tile.advance())
#pragma unroll 1  // the producer has few registers
                for (int stage = 0; stage < stages; ++stage) ring.load(tile, stage * TF32_DEPTH, X, Y);
        return;
    }
    take_registers<232>();
    const Tf32Operand<X_ALONG> operand(threadIdx.x / 128 - 1);
    for (Tf32Tile<BY, GROUP> tile(rows_x, rows_y); tile.exists(); tile.advance()) {
        float sums[BY / 2] = {};
        unsigned x[2][TF32_DEPTH / 8][4];
        typename Tf32Ring<BY, X_ALONG>::Stage before;
#pragma unroll 1
        for (int stage = 0; stage < stages; stage += 2)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const auto now = ring.next();
                operand.load(x[half], now.x);
                begin_products();
#pragma unroll
                for (int i = 0; i < TF32_DEPTH / 8; ++i)
                    multiply_tf32(sums, x[half][i], further(rows_of_128_bytes(now.y()), 32 * i), stage + half + i > 0);
                commit_products();
                wait_for_products<1>();  // the stage before has been read
                if (stage + half > 0) ring.release(before);
                before = now;
            }
        wait_for_products<0>();
        if (stages > 0) ring.release(before);
        pin(sums);
        const int row = X_IS_A ? tile.x : tile.y, col = X_IS_A ? tile.y : tile.x;
        float* const c = C + row * static_cast<Offset>(ldc) + col;
        store_sums<X_IS_A>(c, ldc, M - row, N - col, operand, alpha, sums, beta);
    }
}
