/* gemmlab
summary = "float32 operands as two halves each, three products on Hopper's tensor cores, sums in float32"
idea = "A float32 is two halves to 23 bits, and three products of tensor cores are faster than one of FMA lanes."
source = "Ootomo and Yokota, Recovering single precision accuracy from Tensor Cores (2022); scales by row are ours"
op = "gemm"
after = "persistent"
arch = "sm_90a"
precision = "f16x3"
transposes = ["nn", "nt", "tn", "tt"]
phases = "2 * max(1, ceil_div(K, SLICE))"
early = true
args = "M, N, K, alpha, A, lda, B, ldb, beta, C, ldc, workspace, tickets, phase"
grid = """(ceil_div(M, BM) * BM + ceil_div(N, BN) * BN) // 64 * ceil_div(min(K, SLICE), 128) if phase % 2 == 0 \
    else min(BLOCKS, ceil_div(M, BM) * ceil_div(N, BN))"""
threads = "128 if phase % 2 == 0 else 384"
smem_bytes = "36864 if phase % 2 == 0 else STAGES * 256 * (BM + BN) + 16 * (BM + BN) + 128 + 32 * (BM + BN + 8)"
steps = "128 * ceil_div(K, 128) * ceil_div(ceil_div(M, BM) * ceil_div(N, BN), max(1, blocks))"
workspace = "2048 + 516 * ceil_div(min(K, SLICE), 128) * (ceil_div(M, BM) * BM + ceil_div(N, BN) * BN)"
tickets = "39 + ceil_div(M, BM) * (2 + BM // 32) + ceil_div(N, BN) * (2 + BN // 32)"
require = [
    "BM == 128 and (BN == 64 or BN == 128) and 2 <= STAGES <= (3 if BN == 128 else 4)",
    "GROUP >= 1 and 1 <= BLOCKS <= 4096 and SLICE >= 128 and SLICE % 128 == 0",
]
expect = [
    "shared_load_excess == 0 and shared_store_excess == 0",
    { shape = "128x128x128:tt", that = "shared_load_excess == 0 and shared_store_excess == 0" },
    "executed_HGMMA == 192 and executed_HGMMA_BF16 == 0",
    { shape = "130x70x300", that = "executed_HGMMA == 192 * ceil_div(M, BM) * ceil_div(N, BN) * ceil_div(K, 128)" },
    { shape = "130x70x300", that = "executed_UBLKCP == 6 * 2 * 3 + 4 * (4 + 2) * 3" },
    { shape = "128x128x1024", that = "executed_FFMA == 1024 * K // 32 and global_atomic_requests == 1" },
    # A register or two wait in memory while operands are split, none while parts are multiplied.
    { shape = "128x128x1024", that = "local_store_requests <= 16 + 16 * K // 128" },
]

[params]
BM = 128
BN = 128
STAGES = 3
GROUP = 8     # tiles across a strip of the order in which blocks walk C
BLOCKS = 132  # as many as run at the same time, one a multiprocessor
SLICE = 4096  # of k, that the workspace holds at a time

[tune]
BN = [64, 128]
GROUP = [4, 8, 16]
*/

#include "parts_product.cuh"

// Element by element a = a1 + a2 / 2^11 and b = b1 + b2 / 2^11, in halves, so
//
//     a b  =  a1 b1  +  (a1 b2 + a2 b1) / 2^11  +  a2 b2 / 2^22, which is left out
//
// The first launch makes the halves (split_floats.cuh), the second multiplies them. Tensor cores cut off what sums do
// not hold, so no sum stays in them for more than 64 of k, or 32 if K is small: then the two sums of products join
// float32 sums in registers, with the scales of their row and column.

// Adds the products of all blocks of k, as the producer brings them, to the sums of a warpgroup.
template <int BM, int BN, bool SHORT_SUMS, class Ring>
__device__ __forceinline__ void multiply_halves(float (&sums)[BN / 2], Ring& ring, PartsPlace place, unsigned blocks)
{
    constexpr int SUM_BYTES = SHORT_SUMS ? 64 : 128;  // of a row, that make a sum
    const int first_row = place.row / 64 * 64;        // of the warpgroup
    for (unsigned stage_of_k = 0; stage_of_k < 2 * blocks; ++stage_of_k) {
        const auto stage = ring.next();
        const Rows a1 = rows_of_128_bytes(stage.a + first_row * 128), a2 = further(a1, BM * 128);
        const Rows b1 = rows_of_128_bytes(stage.b), b2 = further(b1, BN * 128);
#pragma unroll
        for (int first = 0; first < 128; first += SUM_BYTES) {
            float high[BN / 2], low[BN / 2];  // a1 b1; a1 b2 + a2 b1
            begin_products();
#pragma unroll
            for (int k = first; k < first + SUM_BYTES; k += 32) {  // bytes
                multiply_f16(high, further(a1, k), further(b1, k), k > first);
                multiply_f16(low, further(a1, k), further(b2, k), k > first);
                multiply_f16(low, further(a2, k), further(b1, k), true);
            }
            commit_products();
            wait_for_products<0>();
            if (first + SUM_BYTES == 128) ring.release(stage);
            pin(high);
            pin(low);
#pragma unroll
            for (int i = 0; i < BN / 2; ++i) {
                const float product = fmaf(low[i], 1.0f / 2048, high[i]);
                const float a_scale = stage.a_scales[place.row + i % 4 / 2 * 8];
                const float b_scale = stage.b_scales[place.col + i / 4 * 8 + i % 2];
                sums[i] = fmaf(product * a_scale, b_scale, sums[i]);
            }
        }
    }
}

template <int BM, int BN, int STAGES, int GROUP, int SLICE, bool TRANS_A, bool TRANS_B, bool SHORT_SUMS>
__global__ void __launch_bounds__(PARTS_THREADS, 1) f16x3(
    int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc,
    void* workspace, unsigned* tickets, int phase)
{
    extern __shared__ __align__(1024) char shared[];
    split_and_multiply<TwoHalves, BM, BN, STAGES, GROUP, SLICE, TRANS_A, TRANS_B>(
        phase, M, N, K, alpha, A, lda, B, ldb, beta, C, ldc, workspace, tickets, shared,
        [](auto& sums, auto& ring, PartsPlace place, unsigned blocks) {
            multiply_halves<BM, BN, SHORT_SUMS>(sums, ring, place, blocks);
        });
}
