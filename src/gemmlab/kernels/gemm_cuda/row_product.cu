/* gemmlab
summary = "a row or a column times lines that are adjacent at each k: a lane has four of them, in registers"
idea = "A thread uses no word twice, so it needs no shared memory: only the loads in flight count."
source = "narrow_strip without its ring; reduce_peak's loads"
op = "gemm"
after = "narrow_strip"
branch = true
arch = "sm_80"
transposes = ["nn", "nt", "tn", "tt"]
grid = "ceil_div(min(M, N), STRIP) * ceil_div(max(M, N), 128) * max(1, min(SPLITS, ceil_div(K, BK)))"
threads = "32 * WARPS"
smem_bytes = "512 * STRIP * WARPS"
steps = "BK * ceil_div(ceil_div(K, BK), SPLITS)"
tickets = "blocks if SPLITS > 1 else 0"
workspace = "512 * WARPS * ceil_div(STRIP, WARPS) * blocks if SPLITS > 1 else 0"
require = [
    "1 <= STRIP <= 8 and 1 <= WARPS <= 16 and WARPS & WARPS - 1 == 0 and 1 <= SPLITS <= 1024 and (ONCE == 0 or ONCE == 2)",
    "BK % (4 * WARPS) == 0 and 4 <= BK // WARPS <= 32 and BK // WARPS * (4 + STRIP) <= 160",
]
expect = [
    # 16 bytes a lane of the wide operand, each word once; of the other one a word for all lanes, every 128 lines.
    { shape = "1x512x512", that = "global_load_requests == K * (N // 128) * 2" },
    { shape = "1x512x512", that = "8 * global_load_sectors == K * N + 8 * K * (N // 128)" },
    { shape = "1x512x512", that = "shared_load_excess == 0 and shared_store_excess == 0" },
    # Each part takes a ticket; the last one reads four words a lane of each.
    { shape = "1x512x512", config = { SPLITS = 4 }, that = "global_atomic_requests == 4 * (N // 128)" },
]

[params]
STRIP = 1   # rows or columns of the narrow operand
BK = 128    # steps of k at a time, BK / WARPS of a warp
WARPS = 8
ONCE = 2    # the wide operand takes no room in the caches that others need (four_once.cuh); 0: as other words do
SPLITS = 1  # parts of k, each a block's

[tune]
BK = [64, 128, 256]
WARPS = [4, 8, 16]
SPLITS = [1, 2, 4, 8]
*/

#include "four_once.cuh"
#include "parts.cuh"
#include "specialize.cuh"
#include "strip_sums.cuh"

constexpr int FAN = 8;  // parts that meet at a ticket: no tile needs more tickets than it has parts

// How many blocks have room on a multiprocessor: a thread needs registers for words in flight, sums and addresses.
constexpr int resident_rows(int warps, int strip, int loads)
{
    const int words = loads * (4 + strip) + 4 * strip + 32;
    const int blocks = 65536 / (32 * warps * (words > 255 ? 255 : words < 64 ? 64 : words));
    return blocks < 1 ? 1 : blocks;
}

//             128 lines
//            +-----------------+
//            | l0  l1  ... l31 |   BK / WARPS steps of warp 0        lane l has lines 4 l to 4 l + 3, and asks for all
//        k   |                 |                                     steps of a turn before it uses the first
//            +-----------------+
//            |                 |   of warp 1, ...
//            +-----------------+
//            :                 :   next turn, or next part
//
// The warps' sums are added in pairs in shared memory, then those of the parts (parts.cuh).
template <int STRIP, int BK, int WARPS, int ONCE, bool TRANS_A, bool TRANS_B>
__global__ void __launch_bounds__(32 * WARPS, resident_rows(WARPS, STRIP, BK / WARPS)) row_product(
    int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc,
    unsigned* tickets, float* workspace)
{
    constexpr int LINES = 4, LOADS = BK / WARPS;
    extern __shared__ __align__(16) float shared[];
    const int depth = sum_depth(K, alpha), lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    specialize(M < N || (M == N && TRANS_B), [&](auto b_is_wide) {
        constexpr bool B_WIDE = decltype(b_is_wide)();
        constexpr bool WIDE_LIES = (B_WIDE ? TRANS_B : !TRANS_A) ? ALONG_K : ACROSS_K;
        constexpr bool NARROW_LIES = (B_WIDE ? !TRANS_A : TRANS_B) ? ALONG_K : ACROSS_K;
        using Sums = StripSums<STRIP, LINES, WARPS, B_WIDE, ACROSS_K>;
        const int narrow_extent = B_WIDE ? M : N, wide_extent = B_WIDE ? N : M;
        const unsigned strips = ceil_div(narrow_extent, STRIP), tiles = strips * ceil_div(wide_extent, 32 * LINES);
        const unsigned tile = blockIdx.x % tiles, part = blockIdx.x / tiles, parts = gridDim.x / tiles;
        const int strip = tile % strips * STRIP, line = tile / strips * 32 * LINES;  // the tile's first
        const int strip_left = narrow_extent - strip, lines_left = wide_extent - line;

        // This part's steps of k, in blocks of BK. All parts have the same number of blocks, or one more.
        const unsigned blocks = ceil_div(depth, BK), count = blocks / parts + (part < blocks % parts);
        const Offset first = (blocks / parts * part + min(part, blocks % parts)) * static_cast<Offset>(BK);
        const int steps = min(count * static_cast<Offset>(BK), depth - first);  // below 1 where there are none

        const float *const wide = B_WIDE ? B : A, *const narrow = B_WIDE ? A : B;
        const Offset wide_ld = B_WIDE ? ldb : lda, narrow_ld = B_WIDE ? lda : ldb;
        const Offset to_line = WIDE_LIES == ALONG_K ? wide_ld : 1, to_k = WIDE_LIES == ALONG_K ? 1 : wide_ld;
        const Offset to_strip = NARROW_LIES == ALONG_K ? narrow_ld : 1, to_x = NARROW_LIES == ALONG_K ? 1 : narrow_ld;
        const Offset start = first + warp * LOADS;
        const float* wide_from = wide + (line + LINES * lane) * to_line + start * to_k;
        const float* narrow_from = narrow + strip * to_strip + start * to_x;
        const int lines = lines_left - LINES * lane;  // of this lane: from below 0 to beyond 4

        float sums[STRIP][LINES] = {};
        const bool vectors = WIDE_LIES == ACROSS_K && rows_are_aligned(wide, wide_ld) &&
                             (lines_left >= 32 * LINES || wide_extent % 4 == 0);
        specialize(vectors, [&](auto fours) {
#pragma unroll 1
            for (int left = steps - warp * LOADS; left > 0; left -= BK) {
                float4 words[LOADS];
                float x[LOADS][STRIP];
#pragma unroll
                for (int i = 0; i < LOADS; ++i)
                    words[i] = load_four_once<fours, ONCE>(wide_from + i * to_k, to_line, i < left ? lines : 0);
#pragma unroll
                for (int i = 0; i < LOADS; ++i)
#pragma unroll
                    for (int s = 0; s < STRIP; ++s)
                        x[i][s] = i < left && s < strip_left ? __ldg(narrow_from + s * to_strip + i * to_x) : 0.0f;
#pragma unroll
                for (int i = 0; i < LOADS; ++i)
#pragma unroll
                    for (int s = 0; s < STRIP; ++s) {
                        sums[s][0] += words[i].x * x[i][s];
                        sums[s][1] += words[i].y * x[i][s];
                        sums[s][2] += words[i].z * x[i][s];
                        sums[s][3] += words[i].w * x[i][s];
                    }
                wide_from += BK * to_k;
                narrow_from += BK * to_x;
            }
        });

        Sums::leave(shared + warp * Sums::WORDS, sums);
        __syncthreads();
        float whole[4 * Sums::QUADS];  // of a thread
        Sums::add_warps(whole, shared, Sums::WORDS);
        float* const c = C + (B_WIDE ? strip : line) * static_cast<Offset>(ldc) + (B_WIDE ? line : strip);
        const auto store = [&](int quad, float4 four) {
            Sums::store(c, ldc, strip_left, lines_left, alpha, quad, four, beta);
        };
        const Offset words = static_cast<Offset>(parts) * (32 * WARPS * 4 * Sums::QUADS);  // of a tile's parts
        add_parts<FAN, 32 * WARPS, 1>(
            whole, part, parts, tickets + tile * tickets_for<FAN>(parts), workspace + tile * words, store);
    });
}
