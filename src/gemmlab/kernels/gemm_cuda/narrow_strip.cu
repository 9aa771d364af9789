/* gemmlab
summary = "a few rows or columns: every warp streams a share of k through shared memory of its own"
idea = "The wide operand is read once, so the bytes in flight decide, and no barrier stops a warp before its sums are done."
source = "public split-k GEMV and skinny GEMM kernels; the ring of cp.async stages made a warp's own"
op = "gemm"
after = "async_copy"
branch = true
arch = "sm_80"
transposes = ["nn", "nt", "tn", "tt"]
grid = "ceil_div(min(M, N), STRIP) * ceil_div(max(M, N), 32 * LINES) * max(1, min(SPLITS, ceil_div(K, BK)))"
threads = "32 * WARPS"
smem_bytes = "4 * WARPS * max(STAGES * (BK * 32 * LINES + STRIP * (BK + 4 * min(1, STRIP - 1))), STRIP * 32 * LINES)"
steps = "BK * WARPS * ceil_div(ceil_div(K, BK), SPLITS * WARPS)"
tickets = "blocks if SPLITS > 1 else 0"
workspace = "512 * WARPS * ceil_div(STRIP * LINES, 4 * WARPS) * blocks if SPLITS > 1 else 0"
require = [
    "1 <= STRIP <= 64 and (LINES == 1 or LINES == 2 or LINES == 4) and STRIP * LINES <= 128",
    "(BK == 8 or BK == 16 or BK == 32 or BK == 64) and 1 <= SPLITS <= 1024 and 2 <= STAGES <= 8",
    "1 <= WARPS <= 16 and WARPS & WARPS - 1 == 0 and 0 <= ONCE <= 1",
    # 99 KiB, which every GPU from sm_80 has for a block; 16 warps may fill an SM of sm_90.
    "WARPS * STAGES * (BK * 32 * LINES + STRIP * (BK + 4 * min(1, STRIP - 1))) <= (25344 if WARPS < 16 else 58112)",
    "32 * WARPS * STRIP * LINES <= (25344 if WARPS < 16 else 58112)",  # words
]
expect = [
    # 16 bytes a lane; of B each word once, of A a strip for every 64 columns: no sector in vain, and no bank twice.
    { shape = "16x512x512", that = "128 * async_copy_requests == K * N + M * K * (N // 64)" },
    { shape = "16x512x512", that = "8 * async_copy_sectors == K * N + M * K * (N // 64) and async_copy_excess == 0" },
    { shape = "16x512x512", that = "shared_load_excess == 0 and shared_store_excess == 0" },
    # A warp comes to one barrier, when its sums are done.
    { shape = "16x512x512", that = "barriers == 8 * (N // 64)" },
    # A is wide, with k along its rows. B is turned on its way, word by word.
    { shape = "512x16x512", that = "128 * async_copy_requests == M * K + 4 * N * K * (M // 64)" },
    { shape = "512x16x512", that = "8 * async_copy_sectors == M * K + N * K * (M // 64) and async_copy_excess == 0" },
    { shape = "512x16x512", that = "shared_load_excess == 0 and shared_store_excess == 0" },
    # A row or a column: of the wide operand each word once, of the other one each for every 32 lines.
    { shape = "1x512x512", config = { STRIP = 1, LINES = 1 }, that = "8 * async_copy_sectors == K * (N + N // 32)" },
    { shape = "512x1x512", config = { STRIP = 1, LINES = 1 }, that = "8 * async_copy_sectors == K * (M + M // 32)" },
    { shape = "512x1x512", config = { STRIP = 1, LINES = 1 }, that = "128 * executed_LDGSTS_128 == M * K" },
    # Four parts take a ticket each; the last one adds the sums of all, its own among them.
    { shape = "16x512x512", config = { SPLITS = 4 }, that = "global_atomic_requests == 4 * (N // 64)" },
    { shape = "16x512x512", config = { SPLITS = 4 }, that = "128 * global_load_requests == 4 * M * N" },
]

[params]
STRIP = 16  # rows or columns of the narrow operand
LINES = 2   # of the wide one, a lane
BK = 16
WARPS = 8   # of a block, each with a share of k
STAGES = 2
ONCE = 0    # 1: the wide operand takes no room in the level-2 cache that others need
SPLITS = 1  # parts of k, each a block's

[tune]
STRIP = [1, 2, 4, 8, 16, 32]
LINES = [1, 2, 4]
BK = [8, 16, 32]
SPLITS = [1, 8]

[search]
STRIP = [1, 2, 4, 8, 16, 32, 64]
LINES = [1, 2, 4]
BK = [8, 16, 32, 64]
WARPS = [2, 4, 8, 16]
STAGES = [2, 3, 4]
SPLITS = [1, 2, 4, 8]
*/

#include "parts.cuh"
#include "specialize.cuh"
#include "strip_sums.cuh"
#include "strip_tiles.cuh"

constexpr int FAN = 8;  // parts that meet at a ticket: no tile needs more tickets than it has parts

// How many blocks should be resident on a multiprocessor: as many as have room in 227 KiB of shared memory, if that
// leaves a thread registers for its sums, for words of both operands, and for addresses.
constexpr int resident_strips(int sums, int warps, int words)
{
    const int registers = sums > 64 ? 255 : sums > 8 ? 128 : 96;
    const int by_registers = 65536 / (32 * warps * registers), by_words = 232448 / (4 * warps * words + 1024);
    return by_registers < by_words ? (by_registers < 1 ? 1 : by_registers) : by_words;
}

//   B is wide (M < N)                     A is wide (M > N), everything is turned
//
//             32 * LINES columns
//            +-----+--------            strip   STRIP rows of A
//            |  w  |  warp 0            tile    32 * LINES columns of B, STRIP x 32 * LINES results
//        k   |  i  |  warp 1            block   a tile's part of k: blockIdx.x / tiles
//            |  d  |    :               warp    a share of that part
//            |  e  |  next part         lane    LINES of the columns, all rows: STRIP * LINES sums
//            |     |    :
//
// A word of the wide operand is used STRIP times, and read once. A warp multiplies one stage of its ring after the
// other, and before each it starts copies into the stage that it has left:
//
//   stage 0   [ multiply t ] [ t + STAGES is on its way ...
//   stage 1   t + 1 is on its way  [ multiply t + 1 ]
//
// It waits for nobody but its own lanes, so that warps are at different places and memory always has something to do.
// The warps' sums are added in pairs, in shared memory, then those of the parts (parts.cuh): an order that depends on K
// and on the configuration alone.
template <int STRIP, int LINES, int BK, int WARPS, int STAGES, int ONCE, bool TRANS_A, bool TRANS_B>
__global__ void __launch_bounds__(32 * WARPS, resident_strips(STRIP * LINES, WARPS, STAGES * BK * (32 * LINES + STRIP)))
narrow_strip(
    int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc,
    unsigned* tickets, float* workspace)
{
    extern __shared__ __align__(16) float shared[];
    const int depth = sum_depth(K, alpha);
    specialize(M < N || (M == N && TRANS_B), [&](auto b_is_wide) {
        constexpr bool B_WIDE = decltype(b_is_wide)();
        constexpr bool WIDE_LIES = (B_WIDE ? TRANS_B : !TRANS_A) ? ALONG_K : ACROSS_K;
        constexpr bool NARROW_LIES = (B_WIDE ? !TRANS_A : TRANS_B) ? ALONG_K : ACROSS_K;
        using Wide = WideTile<LINES, BK, WIDE_LIES, ONCE != 0>;
        using Narrow = NarrowTile<STRIP, BK, NARROW_LIES>;
        using Sums = StripSums<STRIP, LINES, WARPS, B_WIDE, WIDE_LIES>;
        constexpr int STAGE = Wide::FLOATS + Narrow::FLOATS;
        constexpr int OWN = STAGES * STAGE > Sums::WORDS ? STAGES * STAGE : Sums::WORDS;  // shared words of a warp

        // Strips of the same lines are neighbours in the grid; parts of a tile are far from each other.
        const int narrow_extent = B_WIDE ? M : N, wide_extent = B_WIDE ? N : M;
        const unsigned strips = ceil_div(narrow_extent, STRIP), tiles = strips * ceil_div(wide_extent, 32 * LINES);
        const unsigned tile = blockIdx.x % tiles, part = blockIdx.x / tiles, parts = gridDim.x / tiles;
        const int strip = tile % strips * STRIP, line = tile / strips * 32 * LINES;  // the tile's first
        const int strip_left = narrow_extent - strip, lines_left = wide_extent - line;

        // This warp's blocks of k. All warps of all parts have the same number of them, or one more.
        const unsigned blocks = ceil_div(depth, BK), shares = parts * WARPS, share = part * WARPS + threadIdx.x / 32;
        const unsigned count = blocks / shares + (share < blocks % shares);
        const Offset k = (blocks / shares * share + min(share, blocks % shares)) * static_cast<Offset>(BK);
        int uncopied = min(count * static_cast<Offset>(BK), depth - k);  // steps whose copies have not been started
        const float *const wide_from = B_WIDE ? B : A, *const narrow_from = B_WIDE ? A : B;
        const Offset wide_ld = B_WIDE ? ldb : lda, narrow_ld = B_WIDE ? lda : ldb;
        Wide wide(
            wide_from + (WIDE_LIES == ALONG_K ? line * wide_ld + k : k * wide_ld + line), wide_ld, lines_left);
        Narrow narrow(
            narrow_from + (NARROW_LIES == ALONG_K ? strip * narrow_ld + k : k * narrow_ld + strip), narrow_ld,
            strip_left);

        float* const ring = shared + threadIdx.x / 32 * OWN;
        const auto start = [&](float* stage) {
            if (uncopied > 0) {
                wide.copy(stage, uncopied);
                narrow.copy(stage + Wide::FLOATS, uncopied);
                uncopied -= BK;
            }
            commit_copies();  // a group a block of k, an empty one where there is none
        };
        float sums[STRIP][LINES] = {};
        const auto multiply = [&](const float* stage) {
            constexpr int MOST = STRIP * LINES < 32 ? 32 / (STRIP * LINES) : 1;
            constexpr int QUADS = MOST < BK / 4 ? MOST : BK / 4;  // in the body of the loop; more would cost registers
#pragma unroll QUADS
            for (int quad = 0; quad < BK / 4; ++quad) {
                float wide_frag[4][LINES], narrow_frag[4];
                load_wide<LINES, BK, WIDE_LIES>(wide_frag, stage, quad);
#pragma unroll
                for (int x = 0; x < STRIP; ++x) {
                    load_fragment(narrow_frag, stage + Wide::FLOATS + x * Narrow::LD + 4 * quad);
#pragma unroll
                    for (int step = 0; step < 4; ++step)
#pragma unroll
                        for (int i = 0; i < LINES; ++i) sums[x][i] += wide_frag[step][i] * narrow_frag[step];
                }
            }
        };

#pragma unroll
        for (int stage = 0; stage < STAGES - 1; ++stage) start(ring + stage * STAGE);
        float* now = ring;  // the stage to be multiplied
        for (unsigned left = count; left > 0; --left) {
            wait_for_copies<STAGES - 2>();  // the block has come, of this lane's pieces
            __syncwarp();                   // and of all, and nobody reads the one before
            start(now == ring ? ring + (STAGES - 1) * STAGE : now - STAGE);
            multiply(now);
            now = now == ring + (STAGES - 1) * STAGE ? ring : now + STAGE;
        }
        __syncwarp();  // the ring has been read

        Sums::leave(ring, sums);
        __syncthreads();
        float whole[4 * Sums::QUADS];  // of a thread
        Sums::add_warps(whole, shared, OWN);
        float* const c = C + (B_WIDE ? strip : line) * static_cast<Offset>(ldc) + (B_WIDE ? line : strip);
        const auto store = [&](int quad, float4 four) {
            Sums::store(c, ldc, strip_left, lines_left, alpha, quad, four, beta);
        };
        const Offset words = static_cast<Offset>(parts) * (32 * WARPS * 4 * Sums::QUADS);  // of a tile's parts
        add_parts<FAN, 32 * WARPS, 1>(
            whole, part, parts, tickets + tile * tickets_for<FAN>(parts), workspace + tile * words, store);
    });
}
