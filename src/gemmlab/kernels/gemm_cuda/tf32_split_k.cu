/* gemmlab
summary = "TF32 on Hopper's tensor cores, each block a part of k for its tile; the last block of a tile adds the parts"
idea = "Few tiles leave most multiprocessors idle. Tiles times parts of k fill the GPU, and no block waits for another."
source = "NVIDIA, CUTLASS: split-K on Hopper's tensor cores; parts and tickets are those of split_k"
op = "gemm"
after = "persistent"
branch = true
arch = "sm_90a"
precision = "tf32"
transposes = ["nn", "nt", "tt"]
args = "M, N, K, alpha, beta, C, ldc, tensor_map(A), tensor_map(B), workspace, tickets"
grid = [
    "ceil_div(N, BY) * ceil_div(M, 128) if TRANS_A else ceil_div(M, BY) * ceil_div(N, 128)",
    "min(SPLITS, max(1, ceil_div(K, 64)))",
]
threads = 256
smem_bytes = "196608 + 16 * (1536 // (128 + BY))"
steps = "64 * ceil_div(ceil_div(K, 64), SPLITS)"
workspace = "512 * BY * blocks if min(SPLITS, ceil_div(K, 64)) > 1 else 0"
tickets = """(ceil_div(N, BY) * ceil_div(M, 128) if TRANS_A else ceil_div(M, BY) * ceil_div(N, 128)) \
    * ceil_div(min(SPLITS, ceil_div(K, 64)) - 1, FAN // 2 - 1)"""
require = [
    "BY == 64 or BY == 128", "1 <= SPLITS <= 1024 and 4 <= FAN <= 16 and FAN & FAN - 1 == 0",
]
expect = [
    # A warpgroup multiplies 64 x BY x 8 with an instruction of four warps.
    { shape = "256x256x256", that = "executed_HGMMA * 64 * BY * 8 == 4 * M * N * K" },
    # Every block takes one ticket; its part is written once and read once by the block that adds. C is the last write,
    # two floats a lane.
    { shape = "256x256x256", that = "128 * BY * global_atomic_requests == M * N * SPLITS" },
    { shape = "256x256x256", that = "128 * global_store_requests == M * N * (SPLITS + 2)" },
    { shape = "256x256x256", that = "128 * global_load_requests == M * N * SPLITS" },
    # More parts than are added at a time: two levels, and what the first one leaves is read again by the second.
    { shape = "128x128x640", config = { SPLITS = 10 }, that = "128 * BY * global_atomic_requests == M * N * 12" },
    { shape = "128x128x640", config = { SPLITS = 10 }, that = "128 * global_load_requests == M * N * 12" },
    # One part: no tickets, no workspace. Parts beyond the blocks of k are not launched.
    { shape = "128x128x128", config = { SPLITS = 1 }, that = "global_atomic_requests + global_load_requests == 0" },
    { shape = "128x128x128", config = { SPLITS = 9 }, that = "128 * BY * global_atomic_requests == M * N * 2" },
    # X goes to registers once, two words a lane, without a bank conflict.
    { shape = "256x256x256", that = "64 * BY * shared_load_requests == M * N * K and shared_load_excess == 0" },
]

[params]
BY = 128    # of the shared operand's rows in a tile; the other one has 128
FAN = 8     # parts that are added at a time
SPLITS = 4  # parts of k, or as many as there are blocks of 64 of it

[tune]
BY = [64, 128]
SPLITS = [1, 2, 4, 8, 16, 32]

[maps]
A = { type = "tfloat32", box = "32 if TRANS_A else BY, 32", swizzle = 128 }
B = { type = "tfloat32", box = "BY if TRANS_A else 128 if TRANS_B else 32, 32", swizzle = 128 }
*/

#include "parts.cuh"
#include "stretches.cuh"
#include "tf32_ring.cuh"

//        k = 0                          K            blockIdx.x    a tile of C, in the order of tf32_stage.cuh
//        [ part 0 | part 1 | part 2 | part 3 ]       blockIdx.y    a part of k, blocks of 64 as evenly as possible
//
// Blocks that run at the same time work on the same part of k. Each leaves its sums in memory and takes a ticket; who
// takes the last one of a tile has the whole sums (parts.cuh) and stores them. All 256 threads meet at tickets, so none
// of them only copies: thread 0 asks for stages, as in tma_pipeline.
template <int BY, int FAN, bool TRANS_A, bool TRANS_B>
__global__ void __launch_bounds__(256, 1) tf32_split_k(
    int M, int N, int K, float alpha, float beta, float* C, int ldc, const __grid_constant__ CUtensorMap A,
    const __grid_constant__ CUtensorMap B, void* workspace, unsigned* tickets)
{
    extern __shared__ __align__(1024) char shared[];
    constexpr bool X_IS_A = TRANS_A && TRANS_B, X_ALONG = !TRANS_A && TRANS_B;
    constexpr int THREADS = 256, GROUP = 8;
    const CUtensorMap &X = X_IS_A ? A : B, &Y = X_IS_A ? B : A;
    const int rows_x = X_IS_A ? M : N, rows_y = X_IS_A ? N : M;
    const unsigned part = blockIdx.y, parts = gridDim.y;
    const Stretches<unsigned> blocks_of_k(ceil_div(sum_depth(K, alpha), 2 * TF32_DEPTH), parts);
    const int first = 2 * static_cast<int>(blocks_of_k.first_step(part));
    const int stages = 2 * static_cast<int>(blocks_of_k.first_step(part + 1)) - first;
    using Ring = Tf32Ring<BY, X_ALONG>;
    const TileOfXY<BY, GROUP> tile(rows_x, rows_y);
    const Tf32Operand<X_ALONG> operand(threadIdx.x / 128);
    Ring ring(shared), ahead = ring;
    ring.open(X, Y);

    // A stage takes the place of the one that was multiplied before the last: both warpgroups have read it by then.
    int asked = 0;
    const auto ask = [&] {
        if (asked < stages && threadIdx.x == 0) ahead.load(tile, (first + asked) * TF32_DEPTH, X, Y);
        ++asked;
        __syncwarp();
    };
    for (int i = 0; i < Ring::STAGES - 2; ++i) ask();

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
            ask();
        }
    wait_for_products<0>();
    pin(sums);

    // Sums 4 i .. 4 i + 3 of this thread are two rows of X by two of Y: stored as soon as they are added, so that the
    // loop that adds needs few registers.
    const int first_row = X_IS_A ? tile.x : tile.y, first_col = X_IS_A ? tile.y : tile.x;
    const int rows = M - first_row, cols = N - first_col;  // of C from there on
    C += first_row * static_cast<Offset>(ldc) + first_col;
    const bool pairs = reinterpret_cast<unsigned long long>(C) % 8 == 0 && ldc % 2 == 0;
    const auto store_pair = [&](int row, int col, float one, float two) {
        float* const at = C + row * static_cast<Offset>(ldc) + col;
        if (row >= rows || col >= cols) return;
        if (pairs && col + 1 < cols && beta == 0.0f) {
            *reinterpret_cast<float2*>(at) = make_float2(alpha * one, alpha * two);
        } else {
            store_element(at, alpha, one, beta);
            if (col + 1 < cols) store_element(at + 1, alpha, two, beta);
        }
    };
    const auto store = [&](int i, float4 sum) {
        const int y = 8 * i + operand.column, swapped = operand.first;
        if constexpr (X_IS_A) {
            store_pair(operand.pair + swapped, y, sum.x, sum.y);
            store_pair(operand.pair + (swapped ^ 1), y, sum.z, sum.w);
        } else {
            store_pair(y, operand.pair, swapped ? sum.z : sum.x, swapped ? sum.x : sum.z);
            store_pair(y + 1, operand.pair, swapped ? sum.w : sum.y, swapped ? sum.y : sum.w);
        }
    };
    float* const left = static_cast<float*>(workspace) + blockIdx.x * static_cast<Offset>(parts) * (TF32_ROWS * BY);
    add_parts<FAN, THREADS, 1>(sums, part, parts, tickets + blockIdx.x * tickets_for<FAN>(parts), left, store);
}
