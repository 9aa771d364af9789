// The flow of async_copy as a function, for kernels that are about something else: while a tile of A and B is
// multiplied, cp.async copies the next STAGES - 1. A piece of A is A_WIDTH floats, one of B is B_WIDTH: 4 if they are
// aligned and adjacent in the tile as in memory, else 1.
#pragma once

#include "async_tile.cuh"
#include "fragment.cuh"
#include "lane_map.cuh"
#include "quarters.cuh"
#include "pieces.cuh"

// Adds `depth` terms, maybe none, to the sums. `shared` holds STAGES tiles of A and B; `at` is where this thread's
// parts lie.
template <
    int BM, int BN, int BK, int STAGES, int THREADS, int APART_M, int APART_N, bool TRANS_A, bool TRANS_B, int A_WIDTH,
    int B_WIDTH, int PART_M = 4, int PART_N = 4, int TM, int TN>
__device__ __forceinline__ void multiply_pipelined(
    float (&sums)[TM][TN], float* shared, LanePlace at, int depth, const float* A, int lda, int rows, const float* B,
    int ldb, int cols)
{
    using APieces = Pieces<BM, BK, THREADS, !TRANS_A, A_WIDTH>;
    using BPieces = Pieces<BN, BK, THREADS, TRANS_B, B_WIDTH>;
    constexpr int STAGE = APieces::WORDS + BPieces::WORDS;
    const unsigned blocks = ceil_div(depth, BK);
    const int missing = (BK - depth % BK) % BK;
    if (blocks == 0) return;
    APieces a(A, lda, rows, missing);
    BPieces b(B, ldb, cols, missing);
    float a_frag[2][TM], b_frag[2][TN];  // of step k in [k % 2]
    const auto read_step = [&](int set, const float* stage, int k) {
        load_parts<APART_M, PART_M>(a_frag[set], stage + k * APieces::LD + at.row);
        load_parts<APART_N, PART_N>(b_frag[set], stage + APieces::WORDS + k * BPieces::LD + at.col);
    };
    const auto pass_barrier = [] {
        wait_for_copies<STAGES - 2>();
        __syncthreads();
    };

#pragma unroll
    for (int t = 0; t < STAGES - 1; ++t) {
        float* const stage = shared + t * STAGE;
        if (t < blocks) {
#pragma unroll
            for (int i = 0; i < APieces::COUNT; ++i)
                copy_async<A_WIDTH>(stage + a.word(i), a.piece(i), a.exists(i, t == 0 ? missing : 0));
#pragma unroll
            for (int i = 0; i < BPieces::COUNT; ++i)
                copy_async<B_WIDTH>(
                    stage + APieces::WORDS + b.word(i), b.piece(i), b.exists(i, t == 0 ? missing : 0));
            a.advance();
            b.advance();
        }
        commit_copies();
    }
    pass_barrier();

    float* read = shared;
    float* write = shared + (STAGES - 1) * STAGE;
    read_step(0, read, 0);
    for (unsigned left = blocks;; --left) {
        const bool more = left > STAGES - 1;
#pragma unroll
        for (int k = 0; k < BK - 1; ++k) {
            read_step((k + 1) % 2, read, k + 1);
            if (k == 0) {
#pragma unroll
                for (int i = 0; i < APieces::COUNT; ++i)
                    copy_async_if<A_WIDTH>(more, write + a.word(i), a.piece(i));
            }
            if (k == BK / 2 - 1) a.advance();
            if (k == 0) {
#pragma unroll
                for (int i = 0; i < BPieces::COUNT; ++i)
                    copy_async_if<B_WIDTH>(more, write + APieces::WORDS + b.word(i), b.piece(i));
                commit_copies();
            }
            if (k == BK - 2) b.advance();
            add_outer_product_in_serpentine(sums, a_frag[k % 2], b_frag[k % 2]);
        }
        if (left == 1) break;
        pass_barrier();
        float* const next = STAGES == 2 ? write : read == shared + (STAGES - 1) * STAGE ? shared : read + STAGE;
        write = read;
        read = next;
        read_step(0, read, 0);
        add_outer_product_in_serpentine(sums, a_frag[1], b_frag[1]);
    }
    add_outer_product_in_serpentine(sums, a_frag[1], b_frag[1]);
}
