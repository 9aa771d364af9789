/* gemmlab
summary = "blocks that stay: whole tiles, then a stretch each of the last ones; one straight loop, for sm_90 written anew"
idea = "No wave is half empty, and a loop without a branch can be written anew: registers by banks, loads in even distances."
source = "S. Gray's maxas, notes on SGEMM: banks, reuse, the order of FFMAs; Osama et al., Stream-K (2023): whole tiles first"
op = "gemm"
after = "stream_k"
arch = "sm_80"
written_anew = ["sm_90"]
transposes = ["nn", "nt", "tn", "tt"]
# One block a tile. Tiles are divided among more blocks where that saves each block more than SHARE steps: `most` blocks
# with equal stretches of all steps, or as many for each tile, where a stretch grows by at most SHARE steps.
grid = """
    (tiles * of_a_tile if steps_of_k // of_a_tile <= tiles * steps_of_k // most + SHARE else most)
    if steps_of_k * (most - tiles) > SHARE * most else min(BLOCKS, tiles)"""
threads = "(BM // TM) * (BN // TN)"
smem_bytes = "4 * STAGES * BK * (BM + BN + 8)"
steps = "BK * ceil_div(tiles * steps_of_k, max(1, blocks))"
workspace = "8 * BM * BN * blocks"
tickets = "2 * blocks"
require = [
    "8 <= TM <= 16 and TN == 8 and TM & TM - 1 == 0",
    "min(BM, BN) >= 32 and BM & BM - 1 == 0 and BN & BN - 1 == 0 and BM * BN <= 32768",
    "BM % (TM * (4 if TM > TN or BM < 8 * TM else 8)) == 0",  # warps of 4 x 8 or 8 x 4
    "BN % (TN * (8 if TM > TN or BM < 8 * TM else 4)) == 0",
    "BK % 8 == 0 and (BM // TM) * (BN // TN) <= BK * min(BM, BN) // 4",               # float4 a thread
    "3 <= STAGES <= 6 and STAGES * BK * (BM + BN + 8) >= 6 * (BM // TM) * (BN // TN)",  # room to turn results
    "4 * STAGES * BK * (BM + BN + 8) <= 101376",
    "4 <= SHARE <= 1024 and 1 <= BLOCKS <= 4096",
]
expect = [
    # Four tiles on three blocks: the first round's three would leave two idle in the second. All four are divided.
    { shape = "256x512x512", config = { BLOCKS = 3 }, that = "global_atomic_requests == 4" },
    { shape = "256x512x512", config = { BLOCKS = 3 }, that = "128 * global_store_requests == M * N + 4 * BM * BN" },
    { shape = "256x512x512", config = { BLOCKS = 3 }, that = "128 * global_load_requests == 4 * BM * BN" },
    # So few steps that this is not worth it, and tiles that come out even: each is one block's.
    { shape = "256x512x72", config = { BLOCKS = 3 }, that = "global_atomic_requests + global_load_requests == 0" },
    { shape = "256x512x512", config = { BLOCKS = 4 }, that = "global_atomic_requests + global_load_requests == 0" },
    # One tile is divided where it is deep.
    { shape = "128x256x512", config = { BLOCKS = 3 }, that = "global_atomic_requests == 3" },
    { shape = "256x512x72", that = "128 * async_copy_requests == 8 * M * K + 2 * K * N" },
    { shape = "256x512x72", that = "async_copy_excess == 0 and shared_load_excess == 0 and global_load_requests == 0" },
]

[let]
tiles = "ceil_div(M, BM) * ceil_div(N, BN)"
steps_of_k = "ceil_div(K, BK)"
most = "min(BLOCKS, tiles * steps_of_k // SHARE)"
of_a_tile = "most // max(1, tiles)"

[params]
BM = 128
BN = 256
BK = 8
TM = 16
TN = 8
STAGES = 3
SHARE = 16    # steps that dividing tiles costs, about, and the least of a block
BLOCKS = 132  # as many as run at the same time: multiprocessors times blocks that fit on one

[tune]
STAGES = [3, 4]
BLOCKS = [108, 132]

[search]
BM = [64, 128]
BN = [128, 256]
TM = [8, 16]
SHARE = [8, 16, 32]
*/

#include "async_tile.cuh"
#include "grouped_tile.cuh"
#include "parts.cuh"
#include "quarters.cuh"
#include "residency.cuh"
#include "specialize.cuh"
#include "stretches.cuh"
#include "tile.cuh"
#include "written_anew.cuh"

//   eleven tiles of 6 steps on four blocks
//
//   block 0   [ tile 0   ][ tile 4   ][ 5 ...       6 + 11 steps
//   block 1   [ tile 1   ].][ tile 6   ][ 7 ...     6 + 11
//   block 2   [ tile 2   ]..][ tile 8   ][ 9 ...    6 + 10
//   block 3   [ tile 3   ] ....][ tile 10  ]        6 + 10
//
// Three rounds of whole tiles would take 18 steps, with an idle block in the last. So the tiles of the last two rounds
// are divided (stretches.cuh), all others stay whole; with a round less to divide, stretches would be shorter than a
// tile, and more tiles in parts. Parts are added by whoever comes last (parts.cuh), which no block waits for. What a
// block does follows from numbers alone, and so does the order of every sum.
//
// The loop has no peeled last step and no branch but its own, and edges make no difference to it: the ragged block of k
// comes first, rows and columns inside stand in for those outside (pieces.cuh), and no block behind the last is copied.
// So it is the same for every shape: 1024 FFMAs and some 80 other instructions a thread and block of k. For sm_90 it is
// written anew when the machine code of the package is made: docs/sass-workshop.md.
using Steps = unsigned long long;

// Adds the products of some blocks of k, at least one, to the sums. `shared` holds STAGES tiles of A and B and is free:
// a barrier has passed since others used it.
template <bool FOURS, int STAGES, class Shape, int TM, int TN>
__device__ __forceinline__ void
multiply_blocks(float (&sums)[TM][TN], float* shared, const Shape& shape, const TileOperands& x, BlocksOfK range)
{
    using APieces = typename Shape::template APieces<FOURS>;
    using BPieces = typename Shape::template BPieces<FOURS>;
    constexpr int STAGE = APieces::WORDS + BPieces::WORDS, BK = Shape::BK;
    typename Shape::template Feed<FOURS> feed(x, range);
    APieces& a = feed.a;
    BPieces& b = feed.b;
    float a_frag[2][TM], b_frag[2][TN];  // of step k in [k % 2]
    const auto read = [&](const float* stage, int k) {
        load_parts<Shape::APART_M>(a_frag[k % 2], stage + k * APieces::LD + shape.at.row);
        load_parts<Shape::APART_N>(b_frag[k % 2], stage + APieces::WORDS + k * BPieces::LD + shape.at.col);
    };
    // Back and forth along the rows: each product shares a word with the one before.
    const auto multiply = [&](int k) {
#pragma unroll
        for (int i = 0; i < TM; ++i)
#pragma unroll
            for (int step = 0; step < TN; ++step) {
                const int j = i % 2 ? TN - 1 - step : step;
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
    // The loop reads the first words of the buffer behind the last block of k and uses none: they become zeros.
    if (range.count < STAGES)
        for (int i = threadIdx.x; i < STAGE; i += blockDim.x) shared[range.count * STAGE + i] = 0.0f;
    wait_for_copies<STAGES - 2>();
    __syncthreads();

    unsigned now = 0;                      // first word of the buffer that is computed with
    unsigned free = (STAGES - 1) * STAGE;  // of the one of the block before
    read(shared + now, 0);
    unsigned left = range.count;
#pragma unroll 1
    do {
        const bool more = left > STAGES - 1;
#pragma unroll
        for (int k = 0; k < BK - 1; ++k) {
            read(shared + now, k + 1);
            if (k == 0) {
#pragma unroll
                for (int i = 0; i < APieces::COUNT; ++i)
                    copy_async_if<APieces::WIDTH>(more, shared + free + a.word(i), a.piece(i));
#pragma unroll
                for (int i = 0; i < BPieces::COUNT; ++i)
                    copy_async_if<BPieces::WIDTH>(more, shared + free + APieces::WORDS + b.word(i), b.piece(i));
                commit_copies();
            }
            if (k == BK - 2) {
                a.advance();
                b.advance();
            }
            multiply(k);
        }
        wait_for_copies<STAGES - 2>();  // the next block of k has come, of this thread's pieces
        __syncthreads();                // and of all
        free = now;
        asm volatile("" : "+r"(free));  // keeps the compiler from computing it beside `now`
        now = now == (STAGES - 1) * STAGE ? 0 : now + STAGE;
        read(shared + now, 0);
        multiply(BK - 1);  // the last step's products fill the wait for these words
    } while (--left);
    leave_room_behind_loop();
}

template <int BM, int BN, int BK, int TM, int TN, int STAGES, int SHARE, bool TRANS_A, bool TRANS_B>
__global__ void __launch_bounds__((BM / TM) * (BN / TN), resident_blocks(BM, BN, BK, (BM / TM) * (BN / TN))) peak_simt(
    int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc,
    void* workspace, unsigned* tickets)
{
    using Shape = GroupedTile<BM, BN, BK, TM, TN, 1, TRANS_A, TRANS_B>;
    constexpr int FAN = 4;                           // parts that are added at a time
    extern __shared__ __align__(16) float shared[];  // STAGES tiles of A and B

    const int depth = sum_depth(K, alpha);
    const unsigned blocks_of_k = max(ceil_div(depth, BK), 1u);  // an empty sum is a step too: C is scaled
    const unsigned across = ceil_div(N, BN), tiles = ceil_div(M, BM) * across;
    const unsigned last = tiles % gridDim.x;  // tiles of the last round; 0 if every round is full
    const bool divide = last > 0 && static_cast<Steps>(blocks_of_k) * (gridDim.x - last) > SHARE * gridDim.x &&
                        static_cast<Steps>(blocks_of_k) * (gridDim.x + last) < 1ull << 32;
    const unsigned whole = !divide ? tiles : tiles < gridDim.x ? 0 : tiles - last - gridDim.x;
    const Stretches<unsigned> stretches((tiles - whole) * blocks_of_k, gridDim.x);
    const unsigned end = stretches.first_step(blockIdx.x + 1);
    unsigned step = stretches.first_step(blockIdx.x);
    const Shape shape;
#pragma unroll 1
    for (unsigned turn = blockIdx.x; turn < whole || step < end; turn += gridDim.x) {
        unsigned number = turn;  // of the tile
        BlocksOfK range = {0, blocks_of_k};
        if (turn >= whole) {
            number = whole + step / blocks_of_k;
            range.first = step % blocks_of_k;
            range.count = min(end - step, blocks_of_k - range.first);
        }
        const Tile tile = {static_cast<int>(number / across) * BM, static_cast<int>(number % across) * BN};
        const int rows = M - tile.row, cols = N - tile.col;  // of C from this tile on
        const float* const a = A + (TRANS_A ? tile.row : tile.row * static_cast<Offset>(lda));
        const float* const b = B + (TRANS_B ? tile.col * static_cast<Offset>(ldb) : tile.col);

        float sums[TM][TN] = {};
        const TileOperands x = {a, lda, rows, b, ldb, cols, depth};
        if (depth > 0)
            specialize(Shape::in_fours(x), [&](auto fours) {
                multiply_blocks<fours, STAGES>(sums, shared, shape, x, range);
            });

        float* const c = C + tile.row * static_cast<Offset>(ldc) + tile.col;
        const bool alone = range.count == blocks_of_k;
        if (alone && rows >= BM && cols >= BN && rows_are_aligned(C, ldc)) {
            store_parts<Shape::APART_M, Shape::APART_N>(
                c + shape.at.row * static_cast<Offset>(ldc) + shape.at.col, ldc, BM, BN, true, alpha, sums, beta);
        } else {
            const unsigned from = alone ? blockIdx.x : stretches.block_of(step - range.first);
            const unsigned to = alone ? blockIdx.x : stretches.block_of(step - range.first + blocks_of_k - 1);
            __syncthreads();  // nobody reads shared memory any more
            float* const left = static_cast<float*>(workspace) + from * Offset(2 * BM * BN);
            const float(&flat)[TM * TN] = reinterpret_cast<const float(&)[TM * TN]>(sums);
            const typename Shape::Store store = {shape, c, ldc, rows, cols, alpha, beta, shared};
            add_parts<FAN, Shape::THREADS, 1>(flat, blockIdx.x - from, to - from + 1, tickets + 2 * from, left, store);
        }
        if (turn >= whole) step += range.count;
        __syncthreads();  // the next tile's words take the place of this one's
    }
}
