/* gemmlab
summary = "so many blocks as fit, each with an equal stretch of all steps of all tiles"
idea = "All blocks end together, however many tiles there are: a tile at the end of a stretch is shared by two or more."
source = "Osama et al., Stream-K: Work-Centric Parallel Decomposition for Dense GEMM (2023); here no block waits"
op = "gemm"
after = "split_k"
arch = "sm_80"
transposes = ["nn", "nt", "tn", "tt"]
grid = "min(BLOCKS, ceil_div(M, BM) * ceil_div(N, BN) * max(1, ceil_div(K, BK)))"
threads = "KGROUPS * (BM // TM) * (BN // TN)"
smem_bytes = "4 * max(STAGES * BK * (BM + BN + 8), BM * BN * KGROUPS if KGROUPS > 1 else 0)"
steps = "BK * ceil_div(ceil_div(M, BM) * ceil_div(N, BN) * ceil_div(K, BK), max(1, blocks))"
workspace = "8 * BM * BN * blocks"
tickets = "2 * blocks"
require = [
    "4 <= TM <= 16 and 4 <= TN <= 8 and TM & TM - 1 == 0 and TN & TN - 1 == 0",
    "min(BM, BN) >= 32 and BM & BM - 1 == 0 and BN & BN - 1 == 0 and BM * BN <= 32768",
    "BM % (TM * (4 if TM > TN or BM < 8 * TM else 8)) == 0",  # warps of 4 x 8 or 8 x 4
    "BN % (TN * (8 if TM > TN or BM < 8 * TM else 4)) == 0",
    "1 <= KGROUPS <= TM and KGROUPS & KGROUPS - 1 == 0 and BK % (2 * KGROUPS) == 0 and 1 <= SPREAD < BK // KGROUPS",
    "KGROUPS * (BM // TM) * (BN // TN) <= 8 * min(BM, BN)",                               # pieces a thread
    "BK % 8 == 0 and KGROUPS * (BM // TM) * (BN // TN) <= BK * min(BM, BN) // 4",         # float4 a thread
    "2 <= STAGES <= 6 and STAGES * BK * (BM + BN + 8) >= 6 * (BM // TM) * (BN // TN)",  # room to turn results
    "4 * max(STAGES * BK * (BM + BN + 8), BM * BN * KGROUPS if KGROUPS > 1 else 0) <= 101376",
    "1 <= BLOCKS <= 4096 and 4 <= FAN <= 16 and FAN & FAN - 1 == 0",
]
expect = [
    # Four tiles of 9 blocks of k on three blocks, 12 steps each: the second and the third tile are shared by two.
    { shape = "256x512x72", config = { BLOCKS = 3 }, that = "global_atomic_requests == 4" },
    { shape = "256x512x72", config = { BLOCKS = 3 }, that = "128 * global_store_requests == M * N + 4 * BM * BN" },
    { shape = "256x512x72", config = { BLOCKS = 3 }, that = "128 * global_load_requests == 4 * BM * BN" },
    # Whole tiles alone: stored as soon as they are done, as without stretches.
    { shape = "256x512x72", config = { BLOCKS = 4 }, that = "global_atomic_requests + global_load_requests == 0" },
    { shape = "256x512x72", config = { BLOCKS = 2 }, that = "global_atomic_requests == 0" },
    { shape = "256x512x72", config = { BLOCKS = 3 }, that = "async_copy_excess == 0 and shared_load_excess == 0" },
]

[params]
BM = 128
BN = 256
BK = 8
TM = 16
TN = 8
KGROUPS = 1   # groups of threads that share the k of a block
STAGES = 3
SPREAD = 4    # steps over which the copies of a block of k are spread
FAN = 8       # parts that are added at a time
BLOCKS = 132  # as many as run at the same time: multiprocessors times blocks that fit on one

[tune]
BM = [64, 128]
BN = [128, 256]
TM = [8, 16]
STAGES = [3, 4]
BLOCKS = [108, 132, 264]
*/

#include "async_tile.cuh"
#include "grouped_tile.cuh"
#include "parts.cuh"
#include "quarters.cuh"
#include "residency.cuh"
#include "specialize.cuh"
#include "stretches.cuh"
#include "tile.cuh"

//   three tiles of 5 blocks of k on four blocks: 15 steps, so 4 4 4 3
//
//   steps     0  1  2  3  4 | 5  6  7  8  9 | 10 11 12 13 14
//   tile           0        |       1       |        2
//   block     0  0  0  0  1 | 1  1  1  2  2 | 2  2  3  3  3
//                      parts 2         parts 2         parts 2
//
// With a tile a block, three of four multiprocessors would take 5 steps each; here all take 4. A tile that lies within
// one stretch is stored by its block. The others are added by whoever comes last (parts.cuh), which no block waits for.
// Where stretches begin follows from numbers alone, and so does the order of every sum.
//
// A block has parts of at most two tiles: of the one that it begins with and of the one that it ends with. Tile t,
// whose first block is f and whose last one is l, has places 2 f .. 2 f + l - f for them; those of the next tile that
// is shared begin at 2 l or beyond.
using Step = unsigned long long;

// Adds the products of some blocks of k, at least one, to the group's sums: the flow of async_copy. `shared` holds
// STAGES tiles of A and B and is free: a barrier has passed since others used it.
template <bool FOURS, int STAGES, int SPREAD, class Shape, int TM, int TN>
__device__ __forceinline__ void
multiply_blocks(float (&sums)[TM][TN], float* shared, const Shape& shape, const TileOperands& x, BlocksOfK range)
{
    using APieces = typename Shape::template APieces<FOURS>;
    using BPieces = typename Shape::template BPieces<FOURS>;
    constexpr int STAGE = APieces::WORDS + BPieces::WORDS, STEPS = Shape::STEPS;
    typename Shape::template Feed<FOURS> feed(x, range);
    APieces& a = feed.a;
    BPieces& b = feed.b;
    float a_frag[2][TM], b_frag[2][TN];  // of the group's step k in [k % 2]
    const int word_a = shape.group * STEPS * APieces::LD + shape.at.row;
    const int word_b = APieces::WORDS + shape.group * STEPS * BPieces::LD + shape.at.col;
    const auto read = [&](const float* stage, int k) {
        load_parts<Shape::APART_M>(a_frag[k % 2], stage + word_a + k * APieces::LD);
        load_parts<Shape::APART_N>(b_frag[k % 2], stage + word_b + k * BPieces::LD);
    };
    // Back and forth along the shorter side, as in async_copy.
    const auto multiply = [&](int k) {
        constexpr bool BY_ROWS = TM > TN;
        constexpr int LINES = BY_ROWS ? TM : TN, LENGTH = BY_ROWS ? TN : TM;
#pragma unroll
        for (int line = 0; line < LINES; ++line)
#pragma unroll
            for (int step = 0; step < LENGTH; ++step) {
                const int along = line % 2 ? LENGTH - 1 - step : step;
                const int i = BY_ROWS ? line : along, j = BY_ROWS ? along : line;
                sums[i][j] += a_frag[k % 2][i] * b_frag[k % 2][j];
            }
    };

    // The first STAGES - 1 blocks of k on their way, the ragged one before all others.
#pragma unroll
    for (int t = 0; t < STAGES - 1; ++t) {
        float* const stage = shared + t * STAGE;
        if (t < range.count) {
            const int missing = t == 0 ? feed.missing : 0;
#pragma unroll
            for (int i = 0; i < APieces::COUNT; ++i)
                copy_async<APieces::WIDTH>(stage + a.word(i), a.piece(i), a.exists(i, missing));
#pragma unroll
            for (int i = 0; i < BPieces::COUNT; ++i)
                copy_async<BPieces::WIDTH>(stage + APieces::WORDS + b.word(i), b.piece(i), b.exists(i, missing));
            a.advance();
            b.advance();
        }
        commit_copies();  // a group a block of k, an empty one where there is none
    }
    wait_for_copies<STAGES - 2>();
    __syncthreads();

    float* now = shared;                          // the buffer that is computed with
    float* free = shared + (STAGES - 1) * STAGE;  // the one of the block before
    read(now, 0);
    for (unsigned left = range.count;; --left) {
        const bool more = left > STAGES - 1;
#pragma unroll
        for (int k = 0; k < STEPS - 1; ++k) {
            read(now, k + 1);
            // Copies are spread over SPREAD steps: many in a row would fill the queue of loads and stores.
            if (k < SPREAD) {
#pragma unroll
                for (int i = APieces::COUNT * k / SPREAD; i < APieces::COUNT * (k + 1) / SPREAD; ++i)
                    copy_async_if<APieces::WIDTH>(more, free + a.word(i), a.piece(i));
#pragma unroll
                for (int i = BPieces::COUNT * k / SPREAD; i < BPieces::COUNT * (k + 1) / SPREAD; ++i)
                    copy_async_if<BPieces::WIDTH>(more, free + APieces::WORDS + b.word(i), b.piece(i));
            }
            if (k == SPREAD - 1) commit_copies();
            if (k == STEPS - 2) {
                a.advance();
                b.advance();
            }
            multiply(k);
        }
        if (left == 1) break;
        wait_for_copies<STAGES - 2>();  // the next block of k has come, of this thread's pieces
        __syncthreads();                // and of all
        float* const next = STAGES == 2 ? free : now == shared + (STAGES - 1) * STAGE ? shared : now + STAGE;
        free = now;
        now = next;
        read(now, 0);
        multiply(STEPS - 1);
    }
    multiply(STEPS - 1);
}

template <
    int BM, int BN, int BK, int TM, int TN, int KGROUPS, int STAGES, int SPREAD, int FAN, bool TRANS_A, bool TRANS_B>
__global__ void __launch_bounds__(
    KGROUPS * (BM / TM) * (BN / TN), resident_blocks(KGROUPS * BM, BN, BK, KGROUPS * (BM / TM) * (BN / TN)))
stream_k(
    int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc,
    void* workspace, unsigned* tickets)
{
    using Shape = GroupedTile<BM, BN, BK, TM, TN, KGROUPS, TRANS_A, TRANS_B>;
    constexpr int COUNT = Shape::ROWS * TN;          // sums of a thread
    extern __shared__ __align__(16) float shared[];  // STAGES tiles of A and B, then the groups' sums

    const int depth = sum_depth(K, alpha);
    const unsigned blocks_of_k = max(ceil_div(depth, BK), 1u);  // an empty sum is a step too: C is scaled
    const unsigned across = ceil_div(N, BN);
    const Stretches<Step> stretches(static_cast<Step>(ceil_div(M, BM)) * across * blocks_of_k, gridDim.x);
    const Step end = stretches.first_step(blockIdx.x + 1);
    const Shape shape;
    for (Step step = stretches.first_step(blockIdx.x); step < end;) {
        const unsigned number = static_cast<unsigned>(step / blocks_of_k);  // of the tile
        const unsigned first = static_cast<unsigned>(step % blocks_of_k);
        const unsigned count = static_cast<unsigned>(min(end - step, static_cast<Step>(blocks_of_k - first)));
        const Tile tile = {static_cast<int>(number / across) * BM, static_cast<int>(number % across) * BN};
        const int rows = M - tile.row, cols = N - tile.col;  // of C from this tile on
        const float* const a = A + (TRANS_A ? tile.row : tile.row * static_cast<Offset>(lda));
        const float* const b = B + (TRANS_B ? tile.col * static_cast<Offset>(ldb) : tile.col);

        float sums[TM][TN] = {};
        const TileOperands x = {a, lda, rows, b, ldb, cols, depth};
        if (depth > 0)
            specialize(Shape::in_fours(x), [&](auto fours) {
                multiply_blocks<fours, STAGES, SPREAD>(sums, shared, shape, x, {first, count});
            });
        float share[Shape::ROWS][TN];
        shape.share_groups(share, sums, shared);

        // The blocks that have parts of this tile, this one among them.
        const bool whole = count == blocks_of_k;
        const unsigned from = whole ? blockIdx.x : stretches.block_of(step - first);
        const unsigned to = whole ? blockIdx.x : stretches.block_of(step - first + blocks_of_k - 1);
        __syncthreads();  // nobody reads shared memory any more
        float* const c = C + tile.row * static_cast<Offset>(ldc) + tile.col;
        float* const left = static_cast<float*>(workspace) + from * Offset(2 * BM * BN);
        const float(&flat)[COUNT] = reinterpret_cast<const float(&)[COUNT]>(share);
        const typename Shape::Store store = {shape, c, ldc, rows, cols, alpha, beta, shared};
        add_parts<FAN, Shape::THREADS, 1>(flat, blockIdx.x - from, to - from + 1, tickets + 2 * from, left, store);
        step += count;
        __syncthreads();  // the next tile's words take the place of this one's
    }
}
