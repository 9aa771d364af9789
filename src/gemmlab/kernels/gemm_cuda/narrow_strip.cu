/* gemmlab
summary = "a few rows or columns: every warp streams a share of K of its own through shared memory of its own"
idea = "The wide operand is read once, and bytes under way decide: no barrier stops a warp's stream until its sums are done."
source = "skinny products as in public GEMV and split-K kernels; cp.async rings of single warps instead of whole blocks"
op = "gemm"
after = "async_copy"
branch = true
arch = "sm_80"
transposes = ["nn", "nt", "tn", "tt"]
grid = "ceil_div(min(M, N), STRIP) * ceil_div(max(M, N), 32 * LINES) * SPLITS"
threads = "32 * WARPS"
smem_bytes = "4 * WARPS * max(STAGES * (BK * 32 * LINES + STRIP * (BK + 4 * min(1, STRIP - 1))), STRIP * 32 * LINES)"
tickets = "ceil_div(min(M, N), STRIP) * ceil_div(max(M, N), 32 * LINES) * ceil_div(SPLITS, 4) if SPLITS > 1 else 0"
workspace = "512 * WARPS * ceil_div(STRIP * LINES, 4 * WARPS) * blocks if SPLITS > 1 else 0"
require = [
    "1 <= STRIP <= 32 and (LINES == 1 or LINES == 2 or LINES == 4) and STRIP * LINES <= 128",
    "(BK == 8 or BK == 16 or BK == 32 or BK == 64) and 1 <= SPLITS <= 1024 and 2 <= STAGES <= 8",
    "1 <= WARPS <= 16 and WARPS & WARPS - 1 == 0",
    "4 * WARPS * max(STAGES * (BK * 32 * LINES + STRIP * (BK + 4 * min(1, STRIP - 1))), STRIP * 32 * LINES) <= 101376",
]

[params]
STRIP = 16   # rows or columns of the narrow operand
LINES = 2    # of the wide one, a lane
BK = 16
WARPS = 8    # each has a share of K
STAGES = 2
SPLITS = 1   # parts of K, each a block's

[tune]
STRIP = [1, 2, 4, 8, 16, 32]
LINES = [1, 2, 4]
BK = [8, 16, 32]
WARPS = [4, 8]
*/

#include "parts.cuh"
#include "specialize.cuh"
#include "strip_sums.cuh"
#include "strip_tiles.cuh"

constexpr int FAN = 8;  // parts that meet at a ticket

// How many blocks should be resident on a multiprocessor: as many as have room in 227 KiB of shared memory, if that
// leaves a thread registers for its sums, for as many words on their way from shared memory, and for addresses.
constexpr int resident_strips(int sums, int warps, int words)
{
    const int registers = sums > 64 ? 255 : sums > 8 ? 128 : 96;
    const int by_registers = 65536 / (32 * warps * registers), by_words = 232448 / (4 * warps * words + 1024);
    return by_registers < by_words ? (by_registers < 1 ? 1 : by_registers) : by_words;
}

//   M <= N: B is wide                       M > N: A is wide, and everything is turned
//
//             32 * LINES columns
//            +----+---------              a strip of A: STRIP rows
//            |    |  warp 0, part 0       a block: 32 * LINES columns of B, and of k the part blockIdx.x / tiles
//          k |    |  warp 1               a warp:  the same columns, and of k a share of the part
//            |    |   :                   a lane:  LINES of the columns, STRIP * LINES sums
//            |    |  warp 0, part 1
//            |    |   :
//
// Of the wide operand each word is used STRIP times. A warp takes turns at multiplying a stage of its own ring and
// starting copies into the stage before:
//
//   stage t   [ multiply ]                 [ t + STAGES on its way ...
//   stage t+1   on its way ...  [ multiply ]
//
// Only lanes of the warp have to be waited for, so warps of a block are at different places, and memory always has
// something to do. Sums of the warps are added in shared memory, in pairs, then those of the parts (parts.cuh).
template <int STRIP, int LINES, int BK, int WARPS, int STAGES, bool TRANS_A, bool TRANS_B>
__global__ void __launch_bounds__(32 * WARPS, resident_strips(STRIP * LINES, WARPS, STAGES * BK * (32 * LINES + STRIP)))
narrow_strip(
    int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc,
    unsigned* tickets, float* workspace)
{
    extern __shared__ __align__(16) float shared[];
    const int depth = sum_depth(K, alpha);
    specialize(M <= N, [&](auto b_is_wide) {
        constexpr bool B_WIDE = decltype(b_is_wide)();
        constexpr bool WIDE_LIES = (B_WIDE ? TRANS_B : !TRANS_A) ? ALONG_K : ACROSS_K;
        constexpr bool NARROW_LIES = (B_WIDE ? !TRANS_A : TRANS_B) ? ALONG_K : ACROSS_K;
        using Wide = WideTile<LINES, BK, WIDE_LIES>;
        using Narrow = NarrowTile<STRIP, BK, NARROW_LIES>;
        using Place = SumsPlace<STRIP, LINES>;
        constexpr int STAGE = Wide::FLOATS + Narrow::FLOATS;
        constexpr int WORDS = STAGES * STAGE > Place::WORDS ? STAGES * STAGE : Place::WORDS;  // a warp's own
        const float* const wide_operand = B_WIDE ? B : A;
        const float* const narrow_operand = B_WIDE ? A : B;
        const int wide_ld = B_WIDE ? ldb : lda, narrow_ld = B_WIDE ? lda : ldb;

        // Strips of the same lines are neighbours in the grid, parts of the same tile far from each other.
        const unsigned strips = ceil_div(B_WIDE ? M : N, STRIP);
        const unsigned tiles = strips * ceil_div(B_WIDE ? N : M, 32 * LINES);
        const unsigned parts = gridDim.x / tiles, part = blockIdx.x / tiles, tile = blockIdx.x % tiles;
        const int strip = tile % strips * STRIP;        // the first line of the narrow operand
        const int group = tile / strips * 32 * LINES;   // and of the wide one
        const int strip_lines = (B_WIDE ? M : N) - strip, group_lines = (B_WIDE ? N : M) - group;

        // This warp's blocks of k: all warps of all parts have the same number, or one more.
        const unsigned blocks = ceil_div(depth, BK), shares = parts * WARPS;
        const unsigned share = part * WARPS + threadIdx.x / 32;
        const unsigned count = blocks / shares + (share < blocks % shares);
        const Offset k = (blocks / shares * share + min(share, blocks % shares)) * static_cast<Offset>(BK);
        const int steps = min(static_cast<Offset>(count) * BK, depth - k);
        Wide wide(
            wide_operand + (WIDE_LIES == ALONG_K ? group * static_cast<Offset>(wide_ld) + k : k * wide_ld + group),
            wide_ld, group_lines, steps);
        Narrow narrow(
            narrow_operand + (NARROW_LIES == ALONG_K ? strip * static_cast<Offset>(narrow_ld) + k : k * narrow_ld + strip),
            narrow_ld, strip_lines, steps);

        float* const ring = shared + threadIdx.x / 32 * WORDS;
        const auto start = [&](unsigned block, float* stage) {
            if (block < count) {
                wide.copy(stage);
                narrow.copy(stage + Wide::FLOATS);
            }
            commit_copies();  // a group a block of k, an empty one where there is none
        };
        float sums[STRIP][LINES] = {};
        const auto multiply = [&](const float* stage) {
            constexpr int SUMS = STRIP * LINES, MOST = SUMS < 32 ? 32 / SUMS : 1;
            constexpr int QUADS = MOST < BK / 4 ? MOST : BK / 4;  // in the body of the loop
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
                        for (int line = 0; line < LINES; ++line)
                            sums[x][line] += wide_frag[step][line] * narrow_frag[step];
                }
            }
        };

#pragma unroll
        for (int stage = 0; stage < STAGES - 1; ++stage) start(stage, ring + stage * STAGE);
        float* now = ring;                          // the stage to be multiplied
        float* free = ring + (STAGES - 1) * STAGE;  // the one that was, a block before
        for (unsigned block = 0; block < count; ++block) {
            wait_for_copies<STAGES - 2>();  // the next block has come, of this lane's pieces
            __syncwarp();                   // and of all
            start(block + STAGES - 1, free);
            multiply(now);
            free = now;
            now = now == ring + (STAGES - 1) * STAGE ? ring : now + STAGE;
        }
        __syncwarp();  // the ring is free
        leave_sums<WIDE_LIES>(ring, sums);
        __syncthreads();

        using OwnQuad = Quad<STRIP, LINES, !B_WIDE>;
        constexpr int THREADS = 32 * WARPS, QUADS = (OwnQuad::COUNT + THREADS - 1) / THREADS;
        float whole[4 * QUADS] = {};
#pragma unroll
        for (int i = 0; i < QUADS; ++i) {
            const unsigned number = threadIdx.x + i * THREADS;
            if (number < OwnQuad::COUNT) OwnQuad(number).template add_warps<WARPS, WORDS>(whole + 4 * i, shared);
        }
        const Offset words = static_cast<Offset>(parts) * (4 * QUADS * THREADS);  // of the parts of a tile
        if (!join_parts<FAN, THREADS>(whole, part, parts, tickets + tile * tickets_for<FAN>(parts), workspace + tile * words))
            return;
        float* const c = C + (B_WIDE ? strip * static_cast<Offset>(ldc) + group : group * static_cast<Offset>(ldc) + strip);
#pragma unroll
        for (int i = 0; i < QUADS; ++i) {
            const unsigned number = threadIdx.x + i * THREADS;
            const float four[4] = {whole[4 * i], whole[4 * i + 1], whole[4 * i + 2], whole[4 * i + 3]};
            if (number < OwnQuad::COUNT) OwnQuad(number).store(c, ldc, strip_lines, group_lines, alpha, four, beta);
        }
    });
}
