/* gemmlab
summary = "short k: one operand stays in shared memory, the tiles of the other one stream past it"
idea = "The copies of a warp run on from tile to tile, so that a short k does not empty the pipeline at each tile's end."
source = "CUTLASS: persistent kernels; the ring of cp.async stages is a warp's own, as in narrow_strip"
op = "gemm"
after = "async_copy"
branch = true
arch = "sm_80"
transposes = ["nn", "nt", "tn", "tt"]
grid = """ceil_div(min(M, N), TT * (32 // LS)) * max(1, min(BLOCKS // max(1, ceil_div(min(M, N), TT * (32 // LS))), \
    ceil_div(ceil_div(max(M, N), TS * LS), WARPS)))"""
threads = "32 * WARPS"
smem_bytes = "4 * BK * (WARPS * STAGES * TS * LS + ceil_div(min(K, DEPTH), BK) * TT * (32 // LS))"
steps = """4 * ceil_div(K, 4) * ceil_div(ceil_div(max(M, N), TS * LS), \
    WARPS * max(1, blocks // max(1, ceil_div(min(M, N), TT * (32 // LS)))))"""
require = [
    "4 <= TS <= 16 and TS & TS - 1 == 0 and 4 <= TT <= 16 and TT & TT - 1 == 0 and TS * TT <= 128",
    "2 <= LS <= 16 and LS & LS - 1 == 0",
    "(BK == 16 or BK == 32) and DEPTH % BK == 0 and 1 <= DEPTH <= 256 and 1 <= BLOCKS <= 65536",
    "1 <= WARPS <= 16 and 2 <= STAGES <= 8 and 0 <= ONCE <= 1",
    "4 * BK * (WARPS * STAGES * TS * LS + DEPTH // BK * TT * (32 // LS)) <= (232448 if WARPS >= 8 else 101376)",
]
expect = [
    # B comes into shared memory once a block, A once: 16 bytes a lane, no sector in vain, and no bank twice.
    { shape = "512x64x64", that = "8 * async_copy_sectors == M * K + K * N * M // (TS * LS * WARPS)" },
    { shape = "512x64x64", that = "async_copy_excess == 0 and shared_load_excess == 0" },
    # Four neighbours a lane. A warp comes to one barrier of the two in the code.
    { shape = "512x64x64", that = "128 * global_store_requests == M * N and 8 * global_store_sectors == M * N" },
    { shape = "512x64x64", that = "barriers == 2 * M // (TS * LS)" },
]

[params]
TS = 8        # lines of the operand that streams, a thread
TT = 4        # of the one that stays
LS = 2        # lanes along the former; 32 / LS along the latter
BK = 16
WARPS = 8     # of a block, each with a ring of its own
STAGES = 4
DEPTH = 128   # steps of k for which the one operand stays
BLOCKS = 264  # that share the rows, as many as run at the same time
ONCE = 0      # 1: the operand that streams takes no room in the level-2 cache that others need

[tune]
TS = [4, 8]
TT = [4, 8]
LS = [2, 4, 8]
BK = [16, 32]
WARPS = [4, 8]

[search]
TS = [4, 8, 16]
TT = [4, 8, 16]
LS = [2, 4, 8, 16]
BK = [16, 32]
WARPS = [4, 8, 16]
STAGES = [2, 3, 4]
BLOCKS = [132, 264, 528]
*/

#include "epilogue.cuh"
#include "warp_lines.cuh"

// How many blocks should be resident on a multiprocessor: as many as leave a thread registers for its sums, for words of
// both operands, and for addresses.
constexpr int resident_by_sums(int sums, int warps)
{
    const int blocks = 65536 / (32 * warps * (sums > 64 ? 255 : sums > 32 ? 168 : sums > 16 ? 112 : 80));
    return blocks < 1 ? 1 : blocks;
}

//         B or, where N > M, A, stays: TT * 32 / LS lines of all k
//              +-------+
//          k   |       |
//              +-------+
//       k
//     +---+    +-------+
//     | 0 |    |       |   TS * LS rows: a warp's tile. Tiles are dealt to blocks, then to their warps.
//     +---+    +-------+
//     | 1 |    |       |   time of one warp, tiles of four blocks of k:
//     +---+    +-------+
//       :          :          multiply   0.0 0.1 0.2 0.3 store 0   1.0 1.1 1.2 1.3 store 1   2.0 ...
//                             copy       0.3 1.0 1.1 1.2           1.3 2.0 2.1 2.2           2.3 ...
//
// So copies of the next tile run beside the stores of a tile, and no warp waits for another: the only barriers of a
// block stand before and behind the copy of what stays. If k is longer than DEPTH, all of this is done once for every
// DEPTH steps, and C takes their sums one after the other.
template <int TS, int TT, int LS, int BK, int WARPS, int STAGES, int DEPTH, int ONCE, bool TRANS_A, bool TRANS_B>
__global__ void __launch_bounds__(32 * WARPS, resident_by_sums(TS * TT, WARPS))
short_k(
    int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc)
{
    extern __shared__ __align__(16) float shared[];
    const int depth = sum_depth(K, alpha);
    specialize(M >= N, [&](auto a_streams) {
        constexpr bool A_STREAMS = decltype(a_streams)();
        constexpr int LT = 32 / LS;
        using Rows = WarpLines<A_STREAMS ? TS : TT, A_STREAMS ? LS : LT, BK, TRANS_A ? ACROSS_K : ALONG_K, false>;
        using Cols = WarpLines<A_STREAMS ? TT : TS, A_STREAMS ? LT : LS, BK, TRANS_B ? ALONG_K : ACROSS_K, true>;
        using Stream = Chosen<A_STREAMS, Rows, Cols>;
        using Stay = Chosen<A_STREAMS, Cols, Rows>;

        const int warp = threadIdx.x / 32;
        const int stay_extent = A_STREAMS ? N : M, stream_extent = A_STREAMS ? M : N;
        const float *const stay_from = A_STREAMS ? B : A, *const stream_from = A_STREAMS ? A : B;
        const int stay_ld = A_STREAMS ? ldb : lda, stream_ld = A_STREAMS ? lda : ldb;
        const unsigned panels = ceil_div(stay_extent, Stay::LINES), shares = gridDim.x / panels;
        const int panel = blockIdx.x % panels * Stay::LINES;              // the first line that stays
        const unsigned tiles = ceil_div(stream_extent, Stream::LINES);
        const unsigned own = blockIdx.x / panels + shares * warp, step = shares * WARPS;  // the warp's tiles
        float* const ring = shared + warp * (STAGES * Stream::FLOATS);
        float* const staying = shared + WARPS * STAGES * Stream::FLOATS;
        const LanePlace place = place_of_lane<A_STREAMS ? LS : LT, A_STREAMS ? LT : LS>();

        for (int from = 0; from == 0 || from < depth; from += DEPTH) {  // steps of k
            const int until = min(depth - from, DEPTH);                 // counted from there
            if (from > 0) __syncthreads();                              // nobody reads what stayed
            for (int k = warp * BK; k < until; k += WARPS * BK)
                Stay::template copy<false>(
                    staying + k / BK * Stay::FLOATS, stay_from, stay_ld, panel, stay_extent, from + k, until - k);
            commit_copies();

            unsigned coming = own;  // the tile that copies have reached
            int coming_k = 0;
            const auto start = [&](float* stage) {
                if (coming < tiles && coming_k < until) {
                    Stream::template copy<ONCE != 0>(
                        stage, stream_from, stream_ld, coming * Stream::LINES, stream_extent, from + coming_k,
                        until - coming_k);
                    coming_k += BK;
                    if (coming_k >= until) {
                        coming_k = 0;
                        coming += step;
                    }
                }
                commit_copies();  // a group a block of k, an empty one where there is none
            };
#pragma unroll 1
            for (int stage = 0; stage < STAGES - 1; ++stage) start(ring + stage * Stream::FLOATS);
            wait_for_copies<STAGES - 1>();  // what stays has come, of this thread's pieces
            __syncthreads();                // and of all

            float* now = ring;  // the stage to be multiplied
            for (unsigned tile = own; tile < tiles; tile += step) {
                float sums[Rows::COUNT][Cols::COUNT] = {};
                float* last = now;
                for (int k = 0; k < until; k += BK) {
                    wait_for_copies<STAGES - 2>();
                    __syncwarp();  // the stage has come, and nobody reads the one before
                    start(now == ring ? ring + (STAGES - 1) * Stream::FLOATS : now - Stream::FLOATS);
                    const float* const stays = staying + k / BK * Stay::FLOATS;
                    const float *const a = A_STREAMS ? now : stays, *const b = A_STREAMS ? stays : now;
                    const int quads = ceil_div(min(until - k, BK), 4);
#pragma unroll 2
                    for (int quad = 0; quad < quads; ++quad) {
                        float a_frag[4][Rows::COUNT], b_frag[4][Cols::COUNT];
                        Rows::load(a_frag, a, place.row, quad);
                        Cols::load(b_frag, b, place.col, quad);
                        // Back and forth along the shorter side, as add_outer_product_in_serpentine does.
                        constexpr bool ROWS = Rows::COUNT > Cols::COUNT;
                        constexpr int TURNS = ROWS ? Rows::COUNT : Cols::COUNT, LENGTH = ROWS ? Cols::COUNT : Rows::COUNT;
#pragma unroll
                        for (int k = 0; k < 4; ++k)
#pragma unroll
                            for (int turn = 0; turn < TURNS; ++turn)
#pragma unroll
                                for (int at = 0; at < LENGTH; ++at) {
                                    const int other = turn % 2 ? LENGTH - 1 - at : at;
                                    const int i = ROWS ? turn : other, j = ROWS ? other : turn;
                                    sums[i][j] += a_frag[k][i] * b_frag[k][j];
                                }
                    }
                    last = now;
                    now = now == ring + (STAGES - 1) * Stream::FLOATS ? ring : now + Stream::FLOATS;
                }
                const int line = tile * Stream::LINES;
                const int row = A_STREAMS ? line : panel, col = A_STREAMS ? panel : line;
                store_warp_lines<Rows, Cols>(
                    C + row * static_cast<Offset>(ldc) + col, ldc, M - row, N - col, place, alpha, sums,
                    from == 0 ? beta : 1.0f, last);
            }
        }
    });
}
