/* gemmlab
summary = "each tile by the cheapest parts that hold its operands: halves, bfloat16, or multiply-adds in float32"
idea = "The launch that splits a row finds whether two halves hold it, so only tiles that need more parts pay for them."
source = "the idea is this project's; the parts are those of f16x3 and bf16x6"
op = "gemm"
after = "bf16x6"
branch = true
arch = "sm_90a"
precision = "by_tile"
transposes = ["nn", "nt", "tn", "tt"]
phases = "3 * max(1, ceil_div(K, SLICE))"
early = true
args = "M, N, K, alpha, A, lda, B, ldb, beta, C, ldc, workspace, tickets, phase"
grid = """(ceil_div(M, BM) * BM + ceil_div(N, BN) * BN) // 64 * ceil_div(min(K, SLICE), 128) if phase % 3 == 0 \
    else min(BLOCKS, max(ceil_div(M, BM) * ceil_div(N, BN), \
    (ceil_div(M, BM) * BM + ceil_div(N, BN) * BN) // 64 * ceil_div(min(K, SLICE), 128) // 16))"""
threads = "128 if phase % 3 == 0 else 384"
smem_bytes = """68096 if phase % 3 == 0 else 16 * (BM + BN) + 128 + 32 * (BM + BN + 8) + 16 + \
    (STAGES * 256 * (BM + BN) if phase % 3 == 1 else max(168960, (STAGES - 1) * 384 * (BM + BN)))"""
steps = "128 * ceil_div(K, 128) * ceil_div(ceil_div(M, BM) * ceil_div(N, BN), max(1, blocks))"
workspace = "2048 + 772 * ceil_div(min(K, SLICE), 128) * (ceil_div(M, BM) * BM + ceil_div(N, BN) * BN)"
tickets = "42 + ceil_div(M, BM) * (2 + BM // 32) + ceil_div(N, BN) * (2 + BN // 32)"
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
    { shape = "128x128x1024", that = "executed_FFMA == 1024 * K // 32 and global_atomic_requests == 2" },
    # Registers of the producer wait in memory, and others while operands are split and between tiles; none while parts
    # are multiplied.
    { shape = "128x128x1024", that = "local_load_requests <= 520 + 32 * K // 128" },
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
#include "other_strips.cuh"

//   phase 0   split A and B in halves; verdicts on rows of A and columns of B (verdicts.cuh)
//   phase 1   tiles that halves suit; meanwhile rows and columns that halves do not suit, if they are few
//   phase 2   where the halves were, the strips of all other tiles split in bfloat16; then those tiles, by bfloat16 if that
//             suits, else exactly
//
// A launch that nobody needs takes 1 to 3 us, if only for its code, which is in no cache. So phase 2, which mostly ends at
// once, is one launch and not two: its blocks take pieces in turn, and wait until all are split. (ptxas serialises the
// products of two loops in a row, so phase 1 cannot go on with it.)
// One NaN costs 2 to 10 %; a matrix with magnitudes of all sizes takes twice the time.

// The producer's warp and both warpgroups that multiply: images are read, the memory of stages is free.
__device__ __forceinline__ void meet_after_split() { asm volatile("bar.sync 2, 288;" ::: "memory"); }

template <int BM, int BN, int STAGES, int GROUP, int SLICE, bool TRANS_A, bool TRANS_B, bool SHORT_SUMS>
__global__ void __launch_bounds__(PARTS_THREADS, 1) by_tile(
    int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc,
    void* workspace, unsigned* tickets, int phase)
{
    extern __shared__ __align__(1024) char shared[];
    const PartsSlice it =
        PartsSlice::of<TRANS_A, TRANS_B>(phase / 3, SLICE, M, N, K, alpha, A, lda, B, ldb, beta, C, ldc);
    using Halves = SplitProduct<TwoHalves, BM, BN>;
    using Bfloats = SplitProduct<ThreeBfloats, BM, BN>;
    using Tiles = PartsTile<BM, BN, GROUP>;
    const int step = phase % 3, group = threadIdx.x / 128;
    // The piece that a warpgroup has taken.
    const auto piece_behind = [&](const auto& ring) -> unsigned& {
        return reinterpret_cast<unsigned*>(reinterpret_cast<char*>(ring.spare()) + 32 * (BM + BN + 8))[group];
    };
    follow_launch();
    if (step == 0) {
        const Halves halves(M, N, it.depth, workspace, tickets);
        if (blockIdx.x < halves.units())
            split_operands<TRANS_A, TRANS_B>(halves, blockIdx.x, it.A, lda, it.B, ldb, M, N, it.depth, shared);
    } else if (step == 1) {
        Halves halves(M, N, it.depth, workspace, tickets);
        PartsRing<TwoHalves, BM, BN, STAGES> ring(shared, halves);
        halves.set_odd_lines_apart();
        const unsigned others = as_number(it.depth == 0 || !TwoHalves::suit(halves.all_verdicts()));
        const unsigned plain = as_number(!others && !halves.apart);
        ring.open();  // all threads of the block have read verdicts
        const auto suit = [&](const auto& tile) {
            return !others || (it.depth > 0 && TwoHalves::suit(halves.verdict(tile.a_strip, tile.b_strip)));
        };
        if (group == 0) {
            give_back_registers<40>();
            if (threadIdx.x < 32)
                for (Tiles tile(M, N); tile.exists(); tile.advance())
                    if (suit(tile)) ring.load(tile);
            if (plain && threadIdx.x / 32 == 1) halves.forget_verdicts_as_warp(tickets, Turns::SIZE);
        } else {
            take_registers<232>();
            const PartsPlace place;
            for (Tiles tile(M, N); tile.exists(); tile.advance())
                consume_tile<TRANS_A, TRANS_B, BM, BN>(
                    halves, it, ring, place, tile, suit(tile) ? Way::PARTS : Way::SKIP,
                    [](auto& sums, auto& ring, PartsPlace place, unsigned blocks) {
                        multiply_halves<BM, BN, SHORT_SUMS>(sums, ring, place, blocks);
                    });
        }
        if (halves.apart) store_odd_lines<TRANS_A, TRANS_B>(halves, it, Turns{tickets + halves.tickets()});
        if (!others && !plain) halves.forget_verdicts(tickets, Turns::SIZE, fresh_thread());
    } else {
        Bfloats bfloats(M, N, it.depth, workspace, tickets);
        bfloats.set_odd_lines_apart();
        // All verdicts are 0 where they have been forgotten.
        if (it.depth > 0 && TwoHalves::suit(bfloats.all_verdicts())) return;
        // Stages end where the memory for splitting ends, or behind it: what follows them is needed meanwhile.
        constexpr int FOR_SPLITTING = 2 * SPLIT_BYTES<ThreeBfloats>, STAGES_BYTES = (STAGES - 1) * 384 * (BM + BN);
        PartsRing<ThreeBfloats, BM, BN, STAGES - 1> ring(shared + max(0, FOR_SPLITTING - STAGES_BYTES), bfloats);
        ring.open();
        const Turns turns = {tickets + bfloats.tickets()};
        const auto way_of = [&](const auto& tile) {
            const unsigned verdict = bfloats.verdict(tile.a_strip, tile.b_strip);
            return it.depth > 0 && TwoHalves::suit(verdict)      ? Way::SKIP
                   : it.depth > 0 && ThreeBfloats::suit(verdict) ? Way::PARTS
                                                                 : Way::EXACT;
        };
        if (group == 0) {
            give_back_registers<40>();
            if (threadIdx.x < 32) {
                meet_after_split();
                if (threadIdx.x == 0) turns.wait_for_all(Turns::PIECES, bfloats.units());
                __syncwarp();
                for (Tiles tile(M, N); tile.exists(); tile.advance())
                    if (way_of(tile) == Way::PARTS) ring.load(tile);
            }
        } else {
            take_registers<232>();
            split_other_strips<TRANS_A, TRANS_B>(
                bfloats, it, turns, piece_behind(ring), shared + (group - 1) * SPLIT_BYTES<ThreeBfloats>);
            meet_after_split();
            const PartsPlace place;
            for (Tiles tile(M, N); tile.exists(); tile.advance())
                consume_tile<TRANS_A, TRANS_B, BM, BN>(
                    bfloats, it, ring, place, tile, way_of(tile),
                    [](auto& sums, auto& ring, PartsPlace place, unsigned blocks) {
                        multiply_bfloats<BM, BN, SHORT_SUMS, false>(sums, ring, place, blocks, SixProducts());
                    });
        }
        bfloats.forget_verdicts(tickets, Turns::SIZE, fresh_thread());
    }
}
