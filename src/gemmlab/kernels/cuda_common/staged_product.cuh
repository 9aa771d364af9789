// A block's tile of C from tiles of A and B that flow through STAGES buffers in shared memory.
//
//   k-block t   reads the buffer t % STAGES, and starts k-block t + STAGES - 1 into the one that t - 1 has left free
//
//   STAGES 3         t = 0        t = 1        t = 2        t = 3
//   buffer 0       [ multiply ]  [ 3 is on its way .......  multiply ]
//   buffer 1         1 on its way[ multiply ]  [ 4 is on its way .......
//   buffer 2         2 is on its way ........  [ multiply ]
//                             |            |            |
//                             one barrier a k-block: t + 1 is there, and nobody reads t any more
// Fragments are read a step ahead of their use, across the barrier too: the last step of a k-block reads the first
// column and row of the next, after the barrier and before its own products.
#pragma once

#include "fragment.cuh"
#include "lane_map.cuh"
#include "quarters.cuh"
#include "residency.cuh"
#include "tile_stream.cuh"

// `shared` holds STAGES * (A::WORDS + B::WORDS) floats; `at` is where this thread's parts lie in the tile.
template <int BK, int STAGES, int APART_M, int APART_N, int TM, int TN, class A, class B>
__device__ __forceinline__ void multiply_stages(
    float (&sums)[TM][TN], A a, B b, float* shared, LanePlace at, unsigned blocks, int missing)
{
    static_assert(BK % 2 == 0 && STAGES >= 2, "fragments alternate, and so do buffers");
    constexpr int STAGE = A::WORDS + B::WORDS;
    constexpr bool ASYNC = A::ASYNCHRONOUS || B::ASYNCHRONOUS;
    // Through registers A is put away before B is fetched, so that only one of them is held.
    constexpr int B_START = A::ASYNCHRONOUS ? 0 : BK / 2;
    float a_frag[2][TM], b_frag[2][TN];
    const auto read_step = [&](int set, const float* stage, int k) {
        load_parts<APART_M>(a_frag[set], stage + k * A::LD + at.row);
        load_parts<APART_N>(b_frag[set], stage + A::WORDS + k * B::LD + at.col);
    };
    const auto pass_barrier = [] {
        if constexpr (ASYNC) wait_for_copies<STAGES - 2>();
        __syncthreads();
    };

#pragma unroll
    for (int t = 0; t < STAGES - 1; ++t) {
        float* const stage = shared + t * STAGE;
        if (t < blocks) {
            a.start_first(stage, t == 0 ? missing : 0);
            b.start_first(stage + A::WORDS, t == 0 ? missing : 0);
            a.advance();
            b.advance();
            a.finish(stage);
            b.finish(stage + A::WORDS);
        }
        if constexpr (ASYNC) commit_copies();
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
            if (k == 0) a.start(write, more);
            if (k == BK / 2 - 1) {
                a.finish(write);
                a.advance();
            }
            if (k == B_START) {
                b.start(write + A::WORDS, more);
                if constexpr (ASYNC) commit_copies();
            }
            if (k == BK - 2) b.advance();
            add_outer_product_in_serpentine(sums, a_frag[k % 2], b_frag[k % 2]);
        }
        if (left == 1) break;
        b.finish(write + A::WORDS);
        pass_barrier();
        float* const next = STAGES == 2 ? write : read == shared + (STAGES - 1) * STAGE ? shared : read + STAGE;
        write = read;
        read = next;
        read_step(0, read, 0);
        add_outer_product_in_serpentine(sums, a_frag[1], b_frag[1]);
    }
    add_outer_product_in_serpentine(sums, a_frag[1], b_frag[1]);
}

// Warps of LANES_M x LANES_N threads, TM x TN results each in quarters of 4 x 4 (lane_map.cuh). TURN_ASYNC and
// COPY_ASYNC: whether cp.async brings the operand that must be turned, and the one that lies as it is.
//
//   BM 128, BN 256, TM 16, TN 8: eight warps of 4 x 8 lanes, 64 x 64 results each
//
//      at.col   0    64   128  192
//   at.row  0 | w0 | w1 | w2 | w3 |
//          64 | w4 | w5 | w6 | w7 |        where TM is not above TN, a warp is 8 x 4 lanes
//
// How many blocks should be resident stands at the kernel, in its __launch_bounds__; residency.cuh, which is included
// here for that, has the figures.
template <
    int BM, int BN, int BK, int TM, int TN, int LANE_MAP, int STAGES, bool TURN_ASYNC, bool COPY_ASYNC, bool TRANS_A,
    bool TRANS_B>
struct StagedProduct {
    static constexpr int THREADS = (BM / TM) * (BN / TN);
    static constexpr int LANES_M = TM > TN ? 4 : 8, LANES_N = 32 / LANES_M;
    static constexpr int WARPS_N = BN / (LANES_N * TN);
    static_assert(BM % (LANES_M * TM) == 0 && BN % (LANES_N * TN) == 0, "warps tile the block's tile");

    // C's `tile`; the rest is what the kernel was given.
    static __device__ __forceinline__ void store(
        float* shared, Tile tile, int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb,
        float beta, float* C, int ldc)
    {
        const int rows = M - tile.row, cols = N - tile.col;  // of C from this tile on
        const int warp = threadIdx.x / 32;
        LanePlace at = lane_place<LANE_MAP, LANES_M, LANES_N>();
        at.row += warp / WARPS_N * LANES_M * TM;  // [0, BM)
        at.col += warp % WARPS_N * LANES_N * TN;  // [0, BN)
        A += TRANS_A ? tile.row : tile.row * static_cast<Offset>(lda);
        B += TRANS_B ? tile.col * static_cast<Offset>(ldb) : tile.col;

        const int depth = sum_depth(K, alpha);
        float sums[TM][TN] = {};
        if (AStream<4>::fits(A, lda, rows, depth) && BStream<4>::fits(B, ldb, cols, depth))
            multiply<4>(sums, shared, at, depth, A, lda, rows, B, ldb, cols);
        else
            multiply<1>(sums, shared, at, depth, A, lda, rows, B, ldb, cols);

        C += (tile.row + at.row) * static_cast<Offset>(ldc) + tile.col + at.col;
        store_parts<4 * LANES_M, 4 * LANES_N>(
            C, ldc, rows - at.row, cols - at.col, rows_are_aligned(C, ldc), alpha, sums, beta);
    }

private:
    template <int X, bool TURNED, int WIDTH>
    using Stream = TileStream<
        X, BK, THREADS, TURNED, WIDTH == 1 || (TURNED ? TURN_ASYNC : COPY_ASYNC), TURNED && TURN_ASYNC ? 1 : WIDTH>;
    template <int WIDTH>
    using AStream = Stream<BM, !TRANS_A, WIDTH>;
    template <int WIDTH>
    using BStream = Stream<BN, TRANS_B, WIDTH>;

    template <int WIDTH>
    static __device__ __forceinline__ void multiply(
        float (&sums)[TM][TN], float* shared, LanePlace at, int depth, const float* A, int lda, int rows,
        const float* B, int ldb, int cols)
    {
        const unsigned blocks = ceil_div(depth, BK);
        const int missing = (BK - depth % BK) % BK;
        if (blocks > 0)
            multiply_stages<BK, STAGES, 4 * LANES_M, 4 * LANES_N>(
                sums, AStream<WIDTH>(A, lda, rows, missing), BStream<WIDTH>(B, ldb, cols, missing), shared, at,
                blocks, missing);
    }
};
