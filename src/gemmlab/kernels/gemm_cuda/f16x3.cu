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
smem_bytes = "68096 if phase % 2 == 0 else STAGES * 256 * (BM + BN) + 16 * (BM + BN) + 128 + 32 * (BM + BN + 8)"
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
#include "parts_sums.cuh"

// Element by element a = a1 + a2 / 2^11 and b = b1 + b2 / 2^11, in halves, so
//
//     a b  =  a1 b1  +  (a1 b2 + a2 b1) / 2^11  +  a2 b2 / 2^22, which is left out
//
// The first launch makes the halves (split_floats.cuh), the second multiplies them. Tensor cores cut off what sums do
// not hold, so no sum stays in them for more than 64 of k, or for 32 where K is at most 1,280. After that the two sums of
// products join float32 sums in registers, with the scales of their row and column.

// Adds the products of all blocks of k, as the producer brings them, to the sums of a warpgroup.
template <int BM, int BN, bool SHORT_SUMS, class Ring>
__device__ __forceinline__ void multiply_halves(float (&sums)[BN / 2], Ring& ring, PartsPlace place, unsigned blocks)
{
    constexpr int STEPS = SHORT_SUMS ? 2 : 4;  // of 16 of k, that make a sum
    add_products<BM, BN, STEPS, true>(
        sums, ring, place, blocks,
        [](auto& high, auto& low, Rows a1, Rows b1, bool add) {
            const Rows a2 = further(a1, BM * 128), b2 = further(b1, BN * 128);
            multiply_f16(high, a1, b1, add);
            multiply_f16(low, a1, b2, add);
            multiply_f16(low, a2, b1, true);
        },
        [](float high, float low) { return fmaf(low, 1.0f / 2048, high); });
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
