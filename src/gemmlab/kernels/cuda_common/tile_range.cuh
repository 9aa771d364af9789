// A tile of C times a range of k: the flow of async_copy, by one group of threads or by several that share the terms.
//
// A block of k in shared memory, KGROUPS = 4 and BK = 32, and what becomes of the sums:
//
//     k    0 ..  7    group 0 multiplies these for all BM x BN results       all groups leave their sums in shared
//          8 .. 15    group 1                                                memory; then group g adds up rows
//         16 .. 23    group 2                                                g * TM / 4 and on of each thread's TM:
//         24 .. 31    group 3                                                every thread ends with TM / 4 x TN
//
// So a small tile keeps many warps busy, each with as many results a thread as a large tile has: words that are read
// from shared memory count per product, and 8 x 8 results need half as many as 4 x 4.
//
// Blocks of k are counted from 0; the ragged one is the first (see stream.cuh).
#pragma once

#include "async_tile.cuh"
#include "fragment.cuh"
#include "lane_map.cuh"
#include "parts.cuh"
#include "quarters.cuh"
#include "specialize.cuh"
#include "stream.cuh"
#include "tile.cuh"

// What a block reads: A from the first row of its tile on, and B from the first column; so many of them exist.
struct TileOperands {
    const float* a;
    int lda, rows;
    const float* b;
    int ldb, cols;
    int depth;  // terms of each sum
};

struct BlocksOfK {
    unsigned first;
    unsigned count;
};

// The blocks of one of several parts: the first parts have one more where they cannot be even.
__device__ __forceinline__ BlocksOfK blocks_of_part(unsigned blocks, unsigned part, unsigned parts)
{
    const unsigned each = blocks / parts, more = blocks % parts;
    return {part * each + min(part, more), each + (part < more)};
}

template <int BM, int BN, int BK, int TM, int TN, int KGROUPS, int STAGES, int SPREAD, bool TRANS_A, bool TRANS_B>
class TileRange {
    static constexpr int GROUP = (BM / TM) * (BN / TN);                                    // threads of a group
    static constexpr int STEPS = BK / KGROUPS;                                             // of a group in a block of k
    static constexpr int LANES_M = TM > TN || BM < 8 * TM ? 4 : 8, LANES_N = 32 / LANES_M;  // of a warp
    static constexpr int APART_M = 4 * LANES_M, APART_N = 4 * LANES_N;                     // between quarters
    static constexpr int WARPS_N = BN / (LANES_N * TN);                                    // beside each other
    static_assert(STEPS % 2 == 0 && SPREAD < STEPS && TM % KGROUPS == 0, "groups share k and rows evenly");

    // What must be turned comes float by float; it may lie anywhere.
    template <bool FOURS>
    using AStream = Stream<BM, BK, KGROUPS * GROUP, !TRANS_A, TRANS_A && FOURS ? 4 : 1>;
    template <bool FOURS>
    using BStream = Stream<BN, BK, KGROUPS * GROUP, TRANS_B, !TRANS_B && FOURS ? 4 : 1>;

    const int thread = threadIdx.x % GROUP;  // [0, GROUP)
    const int group = threadIdx.x / GROUP;   // [0, KGROUPS)
    LanePlace at;                            // the thread's first quarter in the tile: [0, BM), [0, BN)

public:
    static constexpr int THREADS = KGROUPS * GROUP;
    static constexpr int ROWS = TM / KGROUPS;  // of TN results that a thread ends up with

    __device__ __forceinline__ TileRange() : at(lane_place<Z_ORDER, LANES_M, LANES_N>())
    {
        at.row += thread / 32 / WARPS_N * LANES_M * TM;
        at.col += thread / 32 % WARPS_N * LANES_N * TN;
    }

    // Adds the products of some blocks of k, at least one, to the group's sums. `shared` holds STAGES tiles of A and B
    // and is free: a barrier has passed since others used it.
    __device__ __forceinline__ void
    multiply(float (&sums)[TM][TN], float* shared, const TileOperands& x, BlocksOfK range) const
    {
        const bool fours = (!TRANS_A || AStream<true>::in_fours(x.a, x.lda, x.rows, x.depth)) &&
                           (TRANS_B || BStream<true>::in_fours(x.b, x.ldb, x.cols, x.depth));
        if constexpr (!TRANS_A && TRANS_B) multiply_pieces<true>(sums, shared, x, range);
        else specialize(fours, [&](auto yes) { multiply_pieces<yes>(sums, shared, x, range); });
    }

    // All groups' sums together, each group its share of the rows. Every thread of the block calls this.
    __device__ __forceinline__ void
    share_groups(float (&share)[ROWS][TN], const float (&sums)[TM][TN], float* shared) const
    {
        if constexpr (KGROUPS == 1) {
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TN; ++j) share[i][j] = sums[i][j];
            return;
        }
        const auto four_of = [&](int group, int row, int j) {
            return reinterpret_cast<float4*>(shared) + ((group * TM + row) * (TN / 4) + j / 4) * GROUP + thread;
        };
        __syncthreads();  // nobody reads tiles any more
#pragma unroll
        for (int i = 0; i < TM; ++i)
#pragma unroll
            for (int j = 0; j < TN; j += 4)
                *four_of(group, i, j) = make_float4(sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]);
        __syncthreads();
#pragma unroll
        for (int i = 0; i < ROWS; ++i)
#pragma unroll
            for (int j = 0; j < TN; j += 4) {
                float4 of_group[KGROUPS];
#pragma unroll
                for (int g = 0; g < KGROUPS; ++g) of_group[g] = *four_of(g, group * ROWS + i, j);
                const float4 sum = add_in_pairs(of_group);
                share[i][j] = sum.x;
                share[i][j + 1] = sum.y;
                share[i][j + 2] = sum.z;
                share[i][j + 3] = sum.w;
            }
    }

    // C = alpha * sums + beta * C. `c` is the first element of the tile; `rows` x `cols` exist from there on.
    __device__ __forceinline__ void
    store(float* c, int ldc, int rows, int cols, float alpha, const float (&share)[ROWS][TN], float beta, float* shared)
        const
    {
        c += at.row * static_cast<Offset>(ldc) + at.col;
        rows -= at.row;
        cols -= at.col;
        const int line = group * ROWS;  // of the thread's TM lines, the first of its share
        if (rows_are_aligned(c, ldc)) {
            store_parts<APART_M, APART_N>(c, ldc, rows, cols, true, alpha, share, beta, line);
        } else {
            __syncthreads();  // nobody reads what lies in shared memory
            float* const patch = shared + threadIdx.x / 32 * LinesPatch<LANES_M, LANES_N, TN>::WORDS;
            store_lines<LANES_M, LANES_N>(
                patch, lane_place<Z_ORDER, LANES_M, LANES_N>(), c, ldc, rows, cols, alpha, share, beta, line);
        }
    }

private:
    template <bool FOURS>
    __device__ __forceinline__ void
    multiply_pieces(float (&sums)[TM][TN], float* shared, const TileOperands& x, BlocksOfK range) const
    {
        using AS = AStream<FOURS>;
        using BS = BStream<FOURS>;
        constexpr int STAGE = AS::WORDS + BS::WORDS;
        const int lacking = (BK - x.depth % BK) % BK;           // terms that block 0 of k lacks
        const int missing = range.first == 0 ? lacking : 0;     // terms that the first block of this range lacks
        const int start = range.first == 0 ? 0 : static_cast<int>(range.first * BK) - lacking;
        AS a(x.a + (TRANS_A ? start * static_cast<Offset>(x.lda) : start), x.lda, x.rows, missing);
        BS b(x.b + (TRANS_B ? start : start * static_cast<Offset>(x.ldb)), x.ldb, x.cols, missing);
        const int word_a = group * STEPS * AS::LD + at.row, word_b = AS::WORDS + group * STEPS * BS::LD + at.col;
        float a_frag[2][TM], b_frag[2][TN];  // of step k in [k % 2]
        const auto read = [&](const float* stage, int k) {
            load_parts<APART_M>(a_frag[k % 2], stage + word_a + k * AS::LD);
            load_parts<APART_N>(b_frag[k % 2], stage + word_b + k * BS::LD);
        };
        const auto multiply = [&](int k) { add_outer_product_in_serpentine(sums, a_frag[k % 2], b_frag[k % 2]); };

        // The first STAGES - 1 blocks of k on their way, the ragged one before all others.
#pragma unroll
        for (int t = 0; t < STAGES - 1; ++t) {
            float* const stage = shared + t * STAGE;
            if (t < range.count) {
#pragma unroll
                for (int i = 0; i < AS::COUNT; ++i)
                    copy_async<AS::WIDTH>(stage + a.word(i), a.piece(i), a.exists(i, t == 0 ? missing : 0));
#pragma unroll
                for (int i = 0; i < BS::COUNT; ++i)
                    copy_async<BS::WIDTH>(
                        stage + AS::WORDS + b.word(i), b.piece(i), b.exists(i, t == 0 ? missing : 0));
                a.advance();
                b.advance();
            }
            commit_copies();  // a group a block of k, an empty one where there is none
        }
        wait_for_copies<STAGES - 2>();
        __syncthreads();

        float* now = shared;                          // the buffer that is computed with
        float* free = shared + (STAGES - 1) * STAGE;  // the one that was, a block before
        read(now, 0);
        for (unsigned left = range.count;; --left) {
            const bool more = left > STAGES - 1;
#pragma unroll
            for (int k = 0; k < STEPS - 1; ++k) {
                read(now, k + 1);
                // The copies are spread over SPREAD steps: many in a row would fill the queue of loads and stores.
#pragma unroll
                for (int i = AS::COUNT * k / SPREAD; i < AS::COUNT * (k + 1) / SPREAD && i < AS::COUNT; ++i)
                    copy_async_if<AS::WIDTH>(more, free + a.word(i), a.piece(i));
#pragma unroll
                for (int i = BS::COUNT * k / SPREAD; i < BS::COUNT * (k + 1) / SPREAD && i < BS::COUNT; ++i)
                    copy_async_if<BS::WIDTH>(more, free + AS::WORDS + b.word(i), b.piece(i));
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
};
