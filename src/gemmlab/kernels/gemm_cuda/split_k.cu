/* gemmlab
summary = "each block multiplies a part of k for its tile; the last block of a tile adds the parts"
idea = "Tiles times parts of k fill the GPU where tiles alone do not, and no block waits for another."
source = "CUTLASS: split-K and sliced-K; a last block that goes on, from CUDA's sample threadFenceReduction"
op = "gemm"
in_order = "KGROUPS == 1 and SPLITS == 1 and SEAM == 0"
after = "async_copy"
branch = true
arch = "sm_80"
transposes = ["nn", "nt", "tn", "tt"]
grid = [
    # Tiles, then blocks for the seam: columns of its rows, and rows of its columns.
    """ceil_div(max(M - SEAM, min(M, 1)), BM) * ceil_div(max(N - SEAM, min(N, 1)), BN) \
    + (ceil_div(N, 32) if M > BM * ceil_div(max(M - SEAM, min(M, 1)), BM) else 0) \
    + (ceil_div(min(M, BM * ceil_div(max(M - SEAM, min(M, 1)), BM)), 32) \
       if N > BN * ceil_div(max(N - SEAM, min(N, 1)), BN) else 0)""",
    "min(SPLITS, max(1, ceil_div(K, BK)))",
]
threads = "KGROUPS * (BM // TM) * (BN // TN)"
smem_bytes = "4 * max(STAGES * BK * (BM + BN + 8), BM * BN * KGROUPS if KGROUPS > 1 else 0)"
tiles = """ceil_div(max(M - SEAM, min(M, 1)), BM) * ceil_div(max(N - SEAM, min(N, 1)), BN) \
    * min(SPLITS, max(1, ceil_div(K, BK)))"""
steps = "BK * ceil_div(ceil_div(K, BK), SPLITS)"
workspace = "4 * BM * BN * blocks if min(SPLITS, ceil_div(K, BK)) > 1 else 0"
tickets = "ceil_div(M, BM) * ceil_div(N, BN) * ceil_div(min(SPLITS, ceil_div(K, BK)) - 1, FAN // 2 - 1)"
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
    "1 <= SPLITS <= 1024 and 4 <= FAN <= 16 and FAN & FAN - 1 == 0",
    "0 <= SEAM <= 4 and (SEAM == 0 or SPLITS == 1) and (ONCE == 0 or ONCE == 3)",
    "SEAM * max(2304, KGROUPS * (BM // TM) * (BN // TN)) <= STAGES * BK * (BM + BN + 8)",  # words for the seam
]
expect = [
    # Every block takes one ticket; its part is written once and read once by the block that adds. C is the last write.
    { shape = "64x64x256", that = "global_atomic_requests == SPLITS" },
    { shape = "64x64x256", that = "128 * global_store_requests == M * N * (SPLITS + 1)" },
    { shape = "64x64x256", that = "128 * global_load_requests == M * N * SPLITS" },
    # More parts than are added at a time: two levels, and what the first one leaves is read again by the second.
    { shape = "64x64x320", config = { SPLITS = 10 }, that = "global_atomic_requests == SPLITS + 2" },
    { shape = "64x64x320", config = { SPLITS = 10 }, that = "128 * global_load_requests == M * N * (SPLITS + 2)" },
    # One part: no tickets, no workspace. Parts beyond the blocks of k are not launched.
    { shape = "64x64x256", config = { SPLITS = 1 }, that = "global_atomic_requests + global_load_requests == 0" },
    { shape = "64x64x64", config = { SPLITS = 9 }, that = "global_atomic_requests == 2" },
    # Groups leave 8 x 8 sums a thread in shared memory, 16 bytes a lane, and meet no bank twice.
    { shape = "64x64x256", that = "128 * shared_store_requests == KGROUPS * SPLITS * M * N" },
    { shape = "64x64x256", that = "shared_load_excess == 0 and shared_store_excess == 0 and async_copy_excess == 0" },
    # Rows of C that are not aligned: twice 16 neighbours in 4 to 6 sectors, through shared memory.
    { shape = "64x63x64", config = { SPLITS = 1 }, that = "4 <= global_store_sectors_per_request <= 6" },
    # A row and a column more cost no tiles: three blocks of 32 columns, and as many terms as 64 rows have.
    { shape = "65x65x64", config = { SPLITS = 1, SEAM = 1 }, that = """
        smsp__sass_thread_inst_executed_op_ffma_pred_on.sum == K * (64 * 64 + 3 * 32 + 64)""" },
]

[params]
BM = 64
BN = 64
BK = 32
TM = 8
TN = 8
KGROUPS = 4  # groups of threads that share the k of a block
STAGES = 3
SPREAD = 4   # steps over which the copies of a block of k are spread
FAN = 8      # parts that are added at a time
SPLITS = 4   # parts of k, or as many as there are blocks of it
ONCE = 0     # 3: A (1) and B (2) take no room in the level-2 cache that others need; one alone gained nowhere
SEAM = 0     # rows and columns beyond the last whole tiles that get no tiles

[tune]
BM = [32, 64, 128]
BN = [32, 64, 128]
KGROUPS = [1, 4]
SPLITS = [1, 2, 4, 8, 16, 32]

[search]
BM = [32, 64, 128, 256]
BN = [32, 64, 128, 256]
BK = [8, 16, 32]
TM = [4, 8, 16]
TN = [4, 8]
KGROUPS = [1, 2, 4]
STAGES = [3, 4]
*/

#include "async_tile.cuh"
#include "grouped_tile.cuh"
#include "parts.cuh"
#include "quarters.cuh"
#include "residency.cuh"
#include "seam.cuh"
#include "specialize.cuh"
#include "tile.cuh"

//          k = 0                          K            blockIdx.x    a tile of C; neighbours share rows of A
//          [ part 0 | part 1 | part 2 | part 3 ]       blockIdx.y    a part of k, blocks of BK as evenly as possible
//   tile 0    x0       x4       x8      x12
//   tile 1    x1       x5       x9      x13            blocks in the order of their numbers: those that run at the
//   tile 2    x2       x6       x10     x14            same time work on the same part of k and share it in the
//   tile 3    x3       x7       x11     x15            level-2 cache
//
// A block that has its part leaves it in memory and takes a ticket; who takes the last of eight adds the eight, and who
// adds the last of all multiplies by alpha and stores (parts.cuh). Up to 8 parts that is one meeting, up to 64 two.
// Nobody waits, so blocks may run in any order, beside other kernels, and few at a time.
//
// Within a block, k is shared once more, by groups of threads whose sums meet in shared memory (grouped_tile.cuh): that
// costs far less than one more part in global memory.
// The blocks of k of one part. If the parts cannot be even, the first ones have one block more.
__device__ __forceinline__ BlocksOfK blocks_of_part(unsigned blocks, unsigned part, unsigned parts)
{
    const unsigned each = blocks / parts, more = blocks % parts;
    return {part * each + min(part, more), each + (part < more)};
}

// Adds the products of some blocks of k, at least one, to the group's sums: the flow of async_copy. `shared` holds
// STAGES tiles of A and B and is free: a barrier has passed since others used it.
template <bool FOURS, int STAGES, int SPREAD, bool ONCE, class Shape, int TM, int TN>
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
                copy_async<APieces::WIDTH, ONCE>(stage + a.word(i), a.piece(i), a.exists(i, missing));
#pragma unroll
            for (int i = 0; i < BPieces::COUNT; ++i)
                copy_async<BPieces::WIDTH, ONCE>(
                    stage + APieces::WORDS + b.word(i), b.piece(i), b.exists(i, missing));
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
                    copy_async_if<APieces::WIDTH, ONCE>(more, free + a.word(i), a.piece(i));
#pragma unroll
                for (int i = BPieces::COUNT * k / SPREAD; i < BPieces::COUNT * (k + 1) / SPREAD; ++i)
                    copy_async_if<BPieces::WIDTH, ONCE>(more, free + APieces::WORDS + b.word(i), b.piece(i));
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
    int BM, int BN, int BK, int TM, int TN, int KGROUPS, int STAGES, int SPREAD, int FAN, int SEAM, int ONCE,
    bool TRANS_A, bool TRANS_B>
__global__ void __launch_bounds__(
    KGROUPS * (BM / TM) * (BN / TN), resident_blocks(KGROUPS * BM, BN, BK, KGROUPS * (BM / TM) * (BN / TN)))
split_k(
    int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc,
    void* workspace, unsigned* tickets)
{
    using Shape = GroupedTile<BM, BN, BK, TM, TN, KGROUPS, TRANS_A, TRANS_B>;
    constexpr int COUNT = Shape::ROWS * TN;          // sums of a thread
    extern __shared__ __align__(16) float shared[];  // STAGES tiles of A and B, then the groups' sums

    const unsigned part = blockIdx.y, parts = gridDim.y;
    if constexpr (SEAM > 0) {
        const unsigned tiles = tiles_before_seam<BM, SEAM>(M) * tiles_before_seam<BN, SEAM>(N);
        if (blockIdx.x >= tiles) {
            const Product all = {M, N, K, A, lda, B, ldb, C, ldc};
            store_seam<BM, BN, SEAM, Shape::THREADS, TRANS_A, TRANS_B>(all, blockIdx.x - tiles, alpha, beta, shared);
            return;
        }
    }
    const Tile tile = tile_of_block<BM, BN>(SEAM > 0 ? max(N - SEAM, 1) : N);
    const int rows = M - tile.row, cols = N - tile.col;  // of C from this tile on
    const int depth = sum_depth(K, alpha);
    A += TRANS_A ? tile.row : tile.row * static_cast<Offset>(lda);
    B += TRANS_B ? tile.col * static_cast<Offset>(ldb) : tile.col;

    const Shape shape;
    float sums[TM][TN] = {};
    const BlocksOfK own = blocks_of_part(ceil_div(depth, BK), part, parts);
    const TileOperands x = {A, lda, rows, B, ldb, cols, depth};
    if (own.count > 0)
        specialize(Shape::in_fours(x), [&](auto fours) {
            multiply_blocks<fours, STAGES, SPREAD, ONCE != 0>(sums, shared, shape, x, own);
        });
    float share[Shape::ROWS][TN];
    shape.share_groups(share, sums, shared);

    __syncthreads();  // nobody reads shared memory any more
    C += tile.row * static_cast<Offset>(ldc) + tile.col;
    tickets += blockIdx.x * tickets_for<FAN>(parts);
    float* const left = static_cast<float*>(workspace) + blockIdx.x * static_cast<Offset>(parts) * (BM * BN);
    const float(&flat)[COUNT] = reinterpret_cast<const float(&)[COUNT]>(share);
    const typename Shape::Store store = {shape, C, ldc, rows, cols, alpha, beta, shared};
    add_parts<FAN, Shape::THREADS, 1>(flat, part, parts, tickets, left, store);
}
