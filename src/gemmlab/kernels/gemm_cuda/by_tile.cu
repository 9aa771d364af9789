/* gemmlab
summary = "each tile by the cheapest parts that hold its operands: halves, bfloat16, or multiply-adds in float32"
idea = "Whether two halves hold a row is found out while it is split, so only the tiles that need more pay for more."
source = "the idea is this project's; the parts are those of f16x3 and bf16x6"
op = "gemm"
after = "bf16x9"
arch = "sm_90a"
precision = "by_tile"
transposes = ["nn", "nt", "tn", "tt"]
phases = "4 * max(1, ceil_div(K, SLICE))"
early = true
args = "M, N, K, alpha, A, lda, B, ldb, beta, C, ldc, workspace, tickets, phase"
grid = """(ceil_div(M, BM) * BM + ceil_div(N, BN) * BN) // 64 * ceil_div(min(K, SLICE), 128) if phase % 4 == 0 \
    else 3 * BLOCKS if phase % 4 == 2 else min(BLOCKS, ceil_div(M, BM) * ceil_div(N, BN))"""
threads = "128 if phase % 2 == 0 else 384"
smem_bytes = """36864 if phase % 4 == 0 else 53248 if phase % 4 == 2 else 16 * (BM + BN) + 128 + 32 * (BM + BN + 8) + \
    (STAGES * 256 * (BM + BN) if phase % 4 == 1 else (STAGES - 1) * 384 * (BM + BN))"""
steps = "128 * ceil_div(K, 128) * ceil_div(ceil_div(M, BM) * ceil_div(N, BN), max(1, blocks))"
workspace = "2048 + 772 * ceil_div(min(K, SLICE), 128) * (ceil_div(M, BM) * BM + ceil_div(N, BN) * BN)"
tickets = "39 + ceil_div(M, BM) * (2 + BM // 32) + ceil_div(N, BN) * (2 + BN // 32)"
require = [
    "BM == 128 and (BN == 64 or BN == 128) and 3 <= STAGES <= (3 if BN == 128 else 4)",
    "GROUP >= 1 and 1 <= BLOCKS <= 4096 and SLICE >= 128 and SLICE % 128 == 0",
]
expect = [
    "shared_load_excess == 0 and shared_store_excess == 0",
    { shape = "128x128x128:tt", that = "shared_load_excess == 0 and shared_store_excess == 0" },
    "executed_HGMMA == 192 and executed_HGMMA_BF16 == 0",
    { shape = "130x70x300", that = "executed_HGMMA == 192 * ceil_div(M, BM) * ceil_div(N, BN) * ceil_div(K, 128)" },
    { shape = "130x70x300", that = "executed_UBLKCP == 6 * 2 * 3 + 4 * (4 + 2) * 3" },
    { shape = "128x128x1024", that = "executed_FFMA == 1024 * K // 128 and global_atomic_requests == 1" },
    # Registers wait in memory while operands are split and between tiles, none while parts are multiplied.
    { shape = "128x128x1024", that = "local_load_requests <= 145 + 16 * K // 128" },
]

[params]
BM = 128
BN = 128
STAGES = 3    # of halves; there is room for one less of bfloat16
GROUP = 8     # tiles across a strip of the order in which blocks walk C
BLOCKS = 132  # as many as run at the same time, one a multiprocessor
SLICE = 4096  # of k, that the workspace holds at a time

[tune]
BN = [64, 128]
*/

#include "bf16x6.cu"
#include "f16x3.cu"
#include "odd_lines.cuh"

//   phase 0   split A and B in halves; verdicts on rows of A and columns of B (verdicts.cuh)
//   phase 1   tiles that halves suit
//   phase 2   rows and columns that halves do not suit, if they are few; else, where the halves were, the strips of all
//             other tiles split in bfloat16
//   phase 3   those tiles, by bfloat16 if that suits, else exactly
//
// Mostly phases 2 and 3 end at once. A NaN costs its own row, a matrix of wild sizes twice the time.
template <int BM, int BN, int STAGES, int GROUP, int BLOCKS, int SLICE, bool TRANS_A, bool TRANS_B>
__global__ void __launch_bounds__(PARTS_THREADS, 1) by_tile(
    int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc,
    void* workspace, unsigned* tickets, int phase)
{
    extern __shared__ __align__(1024) char shared[];
    const PartsSlice it =
        PartsSlice::of<TRANS_A, TRANS_B>(phase / 4, SLICE, M, N, K, alpha, A, lda, B, ldb, beta, C, ldc);
    using Halves = SplitProduct<TwoHalves, BM, BN>;
    using Bfloats = SplitProduct<ThreeBfloats, BM, BN>;
    const int step = phase % 4;
    follow_launch();
    if (step == 0) {
        const Halves halves(M, N, it.depth, workspace, tickets);
        if (blockIdx.x < halves.units())
            split_operands<TRANS_A, TRANS_B>(halves, blockIdx.x, it.A, lda, it.B, ldb, M, N, it.depth, shared);
    } else if (step == 1) {
        Halves halves(M, N, it.depth, workspace, tickets);
        halves.set_odd_lines_apart();
        const auto way = [&](unsigned verdict) {
            return it.depth > 0 && TwoHalves::suit(verdict) ? Way::PARTS : Way::SKIP;
        };
        multiply_parts<TRANS_A, TRANS_B, TwoHalves, BM, BN, STAGES, GROUP>(
            halves, it, shared, way, [](auto& sums, auto& ring, PartsPlace place, unsigned blocks) {
                multiply_halves<BM, BN>(sums, ring, place, blocks);
            });
    } else if (step == 2) {
        Bfloats bfloats(M, N, it.depth, workspace, tickets);
        bfloats.set_odd_lines_apart();
        if (!bfloats.odd) store_odd_lines<TRANS_A, TRANS_B>(bfloats, it, shared);
        // A strip is needed if it meets a strip, itself included, with which halves do not do.
        const unsigned of_a = bfloats.a.verdicts.all(bfloats.odd), of_b = bfloats.b.verdicts.all(bfloats.odd);
        if (TwoHalves::suit(of_a | of_b)) return;
        const auto needed = [&](const auto& operand, unsigned unit, bool across, unsigned of_other) {
            const unsigned verdict = operand.verdicts.of_strip(operand.strip_of(unit, across), bfloats.odd);
            return ThreeBfloats::suit(verdict) && !TwoHalves::suit(verdict | of_other);
        };
        for (unsigned unit = blockIdx.x; unit < bfloats.units(); unit += gridDim.x) {
            const unsigned of_a_units = bfloats.a.units();
            if (unit < of_a_units ? needed(bfloats.a, unit, TRANS_A, of_b)
                                  : needed(bfloats.b, unit - of_a_units, !TRANS_B, of_a))
                split_operands<TRANS_A, TRANS_B, false>(bfloats, unit, it.A, lda, it.B, ldb, M, N, it.depth, shared);
            __syncthreads();  // the image has been read
        }
    } else {
        Bfloats bfloats(M, N, it.depth, workspace, tickets);
        bfloats.set_odd_lines_apart();
        if (it.depth == 0 || !TwoHalves::suit(bfloats.all_verdicts())) {
            const auto way = [&](unsigned verdict) {
                return it.depth > 0 && TwoHalves::suit(verdict)      ? Way::SKIP
                       : it.depth > 0 && ThreeBfloats::suit(verdict) ? Way::PARTS
                                                                     : Way::EXACT;
            };
            multiply_parts<TRANS_A, TRANS_B, ThreeBfloats, BM, BN, STAGES - 1, GROUP>(
                bfloats, it, shared, way, [](auto& sums, auto& ring, PartsPlace place, unsigned blocks) {
                    multiply_bfloats<BM, BN>(sums, ring, place, blocks, SixProducts());
                });
        }
        bfloats.forget_verdicts(tickets);
    }
}
