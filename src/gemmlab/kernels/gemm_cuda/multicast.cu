/* gemmlab
summary = "TF32 on Hopper's tensor cores, clusters of two blocks that share what they copy"
idea = "Rows that two neighbouring tiles need are read from L2 once and written to both blocks: two thirds of the traffic. On an H200 it pays where rows begin off 32 bytes."
source = "NVIDIA, CUTLASS 3.x, multicast of tensor copies in clusters"
op = "gemm"
after = "persistent"
branch = true
arch = "sm_90a"
precision = "tf32"
transposes = ["nn", "nt", "tt"]
args = "M, N, K, alpha, beta, C, ldc, tensor_map(A), tensor_map(B)"
grid = """X_BLOCKS * Y_BLOCKS * min(BLOCKS // (X_BLOCKS * Y_BLOCKS), ceil_div(N, BY * Y_BLOCKS) * ceil_div(M, 128 * X_BLOCKS) \
    if TRANS_A else ceil_div(M, BY * Y_BLOCKS) * ceil_div(N, 128 * X_BLOCKS))"""
threads = 384
smem_bytes = "196608 + 16 * (1536 // (128 + BY))"
steps = """32 * ceil_div(K, 32) * ceil_div(X_BLOCKS * Y_BLOCKS * (ceil_div(N, BY * Y_BLOCKS) * ceil_div(M, 128 * X_BLOCKS) \
    if TRANS_A else ceil_div(M, BY * Y_BLOCKS) * ceil_div(N, 128 * X_BLOCKS)), max(1, blocks))"""
require = [
    "BY == 64 or BY == 128 or BY == 256", "GROUP >= 1 and X_BLOCKS * Y_BLOCKS <= BLOCKS <= 4096",
    "1 <= X_BLOCKS and 1 <= Y_BLOCKS and 2 <= X_BLOCKS * Y_BLOCKS <= 4 and X_BLOCKS != 3 and Y_BLOCKS != 3",
]
expect = [
    # A warpgroup multiplies 64 x BY x 8 with an instruction of four warps.
    { shape = "256x256x64", that = "executed_HGMMA * 64 * BY * 8 == 4 * M * N * K" },
    # X goes to registers once, two words a lane, without a bank conflict; Y goes from shared memory to the tensor cores.
    { shape = "256x256x64", that = "64 * BY * shared_load_requests == M * N * K and shared_load_excess == 0" },
    # Five copies bring a stage: four boxes of 32 rows of X at 32 of k, and half of Y, for both blocks.
    { shape = "256x256x64", that = "executed_UTMALDG * BY * 128 * 32 == 5 * M * N * K and global_load_requests == 0" },
    # Whole sectors, though the sums are those of C's transpose.
    { shape = "256x256x64", that = "8 * global_store_sectors == M * N and global_store_sectors_per_request == 8" },
]

[params]
BY = 256      # of the shared operand's rows in a tile; the other one has 128
GROUP = 8     # tiles across a strip of the order in which blocks walk C
BLOCKS = 132  # as many as run at the same time, one a multiprocessor
X_BLOCKS = 2  # of a cluster, which share Y
Y_BLOCKS = 1  # likewise, X

[tune]
BY = [128, 256]
GROUP = [4, 8, 16]
X_BLOCKS = [1, 2]
Y_BLOCKS = [1, 2]

[maps]
A = { type = "tfloat32", box = "32 if TRANS_A else BY // X_BLOCKS, 32", swizzle = 128 }
B = { type = "tfloat32", box = "BY // X_BLOCKS if TRANS_A else 128 // Y_BLOCKS if TRANS_B else 32, 32", swizzle = 128 }
*/

#include "tf32_ring.cuh"

template <int BY, int GROUP, int X_BLOCKS, int Y_BLOCKS, bool TRANS_A, bool TRANS_B>
__global__ void __launch_bounds__(384, 1) __cluster_dims__(X_BLOCKS * Y_BLOCKS) multicast(
    int M, int N, int K, float alpha, float beta, float* C, int ldc, const __grid_constant__ CUtensorMap A,
    const __grid_constant__ CUtensorMap B)
{
    extern __shared__ __align__(1024) char shared[];
    constexpr bool X_IS_A = TRANS_A && TRANS_B, X_ALONG = !TRANS_A && TRANS_B;
    const CUtensorMap &X = X_IS_A ? A : B, &Y = X_IS_A ? B : A;
    const int rows_x = X_IS_A ? M : N, rows_y = X_IS_A ? N : M;
    const int stages = 2 * ceil_div(sum_depth(K, alpha), 2 * TF32_DEPTH);
    using Blocks = Cluster<X_BLOCKS, Y_BLOCKS>;
    using Ring = Tf32Ring<BY, X_ALONG, Blocks>;
    using Tiles = TileOfXY<BY, GROUP, Blocks>;
    Ring ring(shared);
    ring.open(X, Y);

    if (threadIdx.x < 128) {  // the producer: one thread copies, the others give their registers
        give_back_registers<40>();
        if (threadIdx.x == 0)
            for (Tiles tile(rows_x, rows_y); tile.exists(); tile.advance())
#pragma unroll 1  // the producer has few registers
                for (int stage = 0; stage < stages; ++stage) ring.load(tile, stage * TF32_DEPTH, X, Y);
        __syncwarp();
        Blocks::leave();
        return;
    }
    take_registers<232>();
    const Tf32Operand<X_ALONG> operand(threadIdx.x / 128 - 1);
    for (Tiles tile(rows_x, rows_y); tile.exists(); tile.advance()) {
        float sums[BY / 2] = {};
        unsigned x[2][TF32_DEPTH / 8][4];
        typename Ring::Stage before;
#pragma unroll 1
        for (int stage = 0; stage < stages; stage += 2)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const auto now = ring.next();
                operand.load(x[half], now.x);
                multiply_stage(sums, x[half], now.y(), stage + half > 0);
                wait_for_products<1>();  // the stage before has been read
                if (stage + half > 0) ring.release(before);
                before = now;
            }
        wait_for_products<0>();
        if (stages > 0) ring.release(before);
        pin(sums);
        store_sums<X_IS_A>(tile, M, N, operand, alpha, sums, beta, C, ldc);
    }
    Blocks::leave();
}
