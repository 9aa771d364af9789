/* gemmlab
summary = "float32 operands as three bfloat16 each, six products on Hopper's tensor cores, sums in float32"
idea = "Three bfloat16 have all bits of a float32 and its range, for twice the work of two halves."
source = "Henry, Tang and Heinecke, Leveraging the bfloat16 Datatype For Higher-Precision Computations (2019)"
op = "gemm"
after = "f16x3"
arch = "sm_90a"
precision = "bf16x6"
transposes = ["nn", "nt", "tn", "tt"]
phases = "2 * max(1, ceil_div(K, SLICE))"
early = true
args = "M, N, K, alpha, A, lda, B, ldb, beta, C, ldc, workspace, tickets, phase"
grid = """(ceil_div(M, BM) * BM + ceil_div(N, BN) * BN) // 64 * ceil_div(min(K, SLICE), 128) if phase % 2 == 0 \
    else min(BLOCKS, ceil_div(M, BM) * ceil_div(N, BN))"""
threads = "128 if phase % 2 == 0 else 384"
smem_bytes = "84480 if phase % 2 == 0 else STAGES * 384 * (BM + BN) + 16 * (BM + BN) + 128 + 32 * (BM + BN + 8)"
steps = "128 * ceil_div(K, 128) * ceil_div(ceil_div(M, BM) * ceil_div(N, BN), max(1, blocks))"
workspace = "2048 + 772 * ceil_div(min(K, SLICE), 128) * (ceil_div(M, BM) * BM + ceil_div(N, BN) * BN)"
tickets = "39 + ceil_div(M, BM) * (2 + BM // 32) + ceil_div(N, BN) * (2 + BN // 32)"
require = [
    "BM == 128 and (BN == 64 or BN == 128) and 2 <= STAGES <= (2 if BN == 128 else 3)",
    "GROUP >= 1 and 1 <= BLOCKS <= 4096 and SLICE >= 128 and SLICE % 128 == 0",
]
expect = [
    "shared_load_excess == 0 and shared_store_excess == 0",
    { shape = "128x128x128:tt", that = "shared_load_excess == 0 and shared_store_excess == 0" },
    "executed_HGMMA == 384 and executed_HGMMA_BF16 == 384",
    { shape = "130x70x300", that = "executed_HGMMA == 384 * ceil_div(M, BM) * ceil_div(N, BN) * ceil_div(K, 128)" },
    { shape = "130x70x300", that = "executed_UBLKCP == 6 * 2 * 3 + 6 * (4 + 2) * 3" },
    { shape = "128x128x1024", that = "executed_FFMA == 512 * K // 64 and global_atomic_requests == 1" },
    # A register or two wait in memory while operands are split, none while parts are multiplied.
    { shape = "128x128x1024", that = "local_store_requests <= 16 * K // 128" },
]

[params]
BM = 128
BN = 128
STAGES = 2
GROUP = 8     # tiles across a strip of the order in which blocks walk C
BLOCKS = 132  # as many as run at the same time, one a multiprocessor
SLICE = 4096  # of k, that the workspace holds at a time

[tune]
BN = [64, 128]
GROUP = [4, 8, 16]
*/

#include "parts_product.cuh"
#include "parts_sums.cuh"

// Element by element a = a1 + a2 + a3 and b = b1 + b2 + b3, in bfloat16, so
//
//     a b  =  a1 b1  +  a1 b2 + a2 b1  +  a1 b3 + a2 b2 + a3 b1  +  a2 b3 + a3 b2 + a3 b3, of which the last three are
//                                                                   left out: they are at most 2^-22 of the first
//
// A bfloat16 has the exponents of a float, so it represents small elements beside large ones, which halves do not.
// Launches are those of f16x3. Rows are scaled to 2^57 (float_parts.cuh), and a sum stays in the tensor cores for 128 of
// k, or for 64 where K is at most 1,280. The small products have a sum of their own: if a tensor core added them
// to a large sum, it would truncate their last bits.

// Where the three parts of 16 of k begin.
struct ThreeRows {
    Rows first, second, third;
};

struct SixProducts {
    template <int COUNT>
    __device__ __forceinline__ void operator()(
        float (&high)[COUNT], float (&low)[COUNT], const ThreeRows& a, const ThreeRows& b, bool add) const
    {
        multiply_bf16(low, a.third, b.first, add);
        multiply_bf16(low, a.second, b.second, true);
        multiply_bf16(low, a.first, b.third, true);
        multiply_bf16(low, a.second, b.first, true);
        multiply_bf16(low, a.first, b.second, true);
        multiply_bf16(high, a.first, b.first, add);
    }
};

// Adds the products of all blocks of k, as the producer brings them, to the sums of a warpgroup; `products` multiplies
// the parts of 16 of k.
template <int BM, int BN, bool SHORT_SUMS, bool TURNS = true, class Ring, class Products>
__device__ __forceinline__ void multiply_bfloats(
    float (&sums)[BN / 2], Ring& ring, PartsPlace place, unsigned blocks, Products products)
{
    constexpr int STEPS = SHORT_SUMS ? 4 : 8;  // of 16 of k, that make a sum
    add_products<BM, BN, STEPS, TURNS>(
        sums, ring, place, blocks,
        [&](auto& high, auto& low, Rows a1, Rows b1, bool add) {
            const Rows a2 = further(a1, BM * 128), b2 = further(b1, BN * 128);
            products(high, low, {a1, a2, further(a2, BM * 128)}, {b1, b2, further(b2, BN * 128)}, add);
        },
        [](float high, float low) { return high + low; });
}

template <int BM, int BN, int STAGES, int GROUP, int SLICE, bool TRANS_A, bool TRANS_B, bool SHORT_SUMS>
__global__ void __launch_bounds__(PARTS_THREADS, 1) bf16x6(
    int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc,
    void* workspace, unsigned* tickets, int phase)
{
    extern __shared__ __align__(1024) char shared[];
    split_and_multiply<ThreeBfloats, BM, BN, STAGES, GROUP, SLICE, TRANS_A, TRANS_B>(
        phase, M, N, K, alpha, A, lda, B, ldb, beta, C, ldc, workspace, tickets, shared,
        [](auto& sums, auto& ring, PartsPlace place, unsigned blocks) {
            multiply_bfloats<BM, BN, SHORT_SUMS>(sums, ring, place, blocks, SixProducts());
        });
}
