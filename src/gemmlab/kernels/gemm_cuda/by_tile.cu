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
args = "M, N, K, alpha, A, lda, B, ldb, beta, C, ldc, workspace, tickets, phase"
grid = """(ceil_div(M, BM) * BM + ceil_div(N, BN) * BN) // 64 * ceil_div(min(K, SLICE), 128) if phase % 4 == 0 \
    else BLOCKS if phase % 4 == 2 else min(BLOCKS, ceil_div(M, BM) * ceil_div(N, BN))"""
threads = "128 if phase % 2 == 0 else 384"
smem_bytes = """36864 if phase % 4 == 0 else 53248 if phase % 4 == 2 else 16 * (BM + BN) + 128 + 32 * (BM + BN + 8) + \
    (STAGES * 256 * (BM + BN) if phase % 4 == 1 else (STAGES - 1) * 384 * (BM + BN))"""
steps = "128 * ceil_div(K, 128) * ceil_div(ceil_div(M, BM) * ceil_div(N, BN), max(1, blocks))"
workspace = "2048 + 772 * ceil_div(min(K, SLICE), 128) * (ceil_div(M, BM) * BM + ceil_div(N, BN) * BN)"
tickets = "3 + ceil_div(M, BM) + ceil_div(N, BN)"
require = [
    "BM == 128 and (BN == 64 or BN == 128) and 3 <= STAGES <= (3 if BN == 128 else 4)",
    "GROUP >= 1 and 1 <= BLOCKS <= 4096 and SLICE >= 128 and SLICE % 128 == 0",
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

//   phase 0   split A and B in halves; verdicts on strips of rows (split_floats.cuh)
//   phase 1   tiles that halves suit
//   phase 2   split in bfloat16 the strips of all other tiles, where the halves were
//   phase 3   those tiles, by bfloat16 if that suits, else exactly
//
// Without such tiles phases 2 and 3 end at once. A NaN or a row of wild sizes costs its own strip of tiles.
template <int BM, int BN, int STAGES, int GROUP, int BLOCKS, int SLICE, bool TRANS_A, bool TRANS_B>
__global__ void __launch_bounds__(PARTS_THREADS, 1) by_tile(
    int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc,
    void* workspace, unsigned* tickets, int phase)
{
    extern __shared__ __align__(1024) char shared[];
    const PartsSlice it =
        PartsSlice::of<TRANS_A, TRANS_B>(phase / 4, SLICE, M, N, K, alpha, A, lda, B, ldb, beta, C, ldc);
    const SplitProduct<TwoHalves, BM, BN> halves(M, N, it.depth, workspace, tickets);
    const SplitProduct<ThreeBfloats, BM, BN> bfloats(M, N, it.depth, workspace, tickets);
    const int step = phase % 4;
    if (step == 0) {
        if (blockIdx.x < halves.units())
            split_operands<TRANS_A, TRANS_B>(halves, blockIdx.x, it.A, lda, it.B, ldb, M, N, it.depth, shared);
    } else if (step == 1) {
        const auto way = [&](unsigned verdict) {
            return it.depth > 0 && TwoHalves::suit(verdict) ? Way::PARTS : Way::SKIP;
        };
        multiply_parts<TRANS_A, TRANS_B, TwoHalves, BM, BN, STAGES, GROUP>(
            halves, it, shared, way, [](auto& sums, auto& ring, PartsPlace place, unsigned blocks) {
                multiply_halves<BM, BN>(sums, ring, place, blocks);
            });
    } else if (step == 2) {
        // A strip is needed if it meets a strip, itself included, with which halves do not do.
        const unsigned of_a = *bfloats.a.all_verdicts, of_b = *bfloats.b.all_verdicts;
        if (TwoHalves::suit(of_a | of_b)) return;
        const auto needed = [](const auto& operand, unsigned unit, bool across, unsigned of_other) {
            const unsigned verdict = operand.verdicts[operand.strip_of(unit, across)];
            return ThreeBfloats::suit(verdict) && !TwoHalves::suit(verdict | of_other);
        };
        for (unsigned unit = blockIdx.x; unit < bfloats.units(); unit += gridDim.x) {
            const unsigned of_a_units = bfloats.a.units();
            if (unit < of_a_units ? needed(bfloats.a, unit, TRANS_A, of_b)
                                  : needed(bfloats.b, unit - of_a_units, !TRANS_B, of_a))
                split_operands<TRANS_A, TRANS_B>(bfloats, unit, it.A, lda, it.B, ldb, M, N, it.depth, shared);
            __syncthreads();  // the image has been read
        }
    } else {
        if (it.depth == 0 || !TwoHalves::suit(halves.all_verdicts())) {
            const auto way = [&](unsigned verdict) {
                return it.depth > 0 && TwoHalves::suit(verdict)      ? Way::SKIP
                       : it.depth > 0 && ThreeBfloats::suit(verdict) ? Way::PARTS
                                                                     : Way::EXACT;
            };
            multiply_parts<TRANS_A, TRANS_B, ThreeBfloats, BM, BN, STAGES - 1, GROUP>(
                bfloats, it, shared, way, [](auto& sums, auto& ring, PartsPlace place, unsigned blocks) {
                    multiply_six<BM, BN>(sums, ring, place, blocks);
                });
        }
        halves.forget_verdicts(tickets);
    }
}
