// The next tiles of A and B, on their way from global to shared memory through the registers of a block.
//
// In shared memory both are k-major, so that a column of A and a row of B are read as vectors: As[BK][A_LD] and
// Bs[BK][B_LD]. A tile that is stored the other way is turned while it is put there; the rows of such a tile are padded
// by 4 words, with which the store has no bank conflicts and every row still begins at a multiple of 16 bytes.
//
//                 stored tile     into As                  stored tile      into Bs
//   TRANS = 0     BM x BK         turned, A_LD = BM + 4    BK x BN          as it is, B_LD = BN
//   TRANS = 1     BK x BM         as it is, A_LD = BM      BN x BK          turned, B_LD = BN + 4
#pragma once

#include "four.cuh"
#include "tile.cuh"
#include "tile_load.cuh"

template <int BM, int BN, int BK, int THREADS, bool TRANS_A = false, bool TRANS_B = false>
struct StagedPair {
    static constexpr int A_LD = TRANS_A ? BM : BM + 4;
    static constexpr int B_LD = TRANS_B ? BN + 4 : BN;
    static constexpr int ALL = 0x7fffffff;  // rows or columns, where there is nothing to guard

    using TileA = StagedTile<TRANS_A ? BK : BM, TRANS_A ? BM : BK, THREADS, TRANS_A ? CONTIGUOUS : PAIRED>;
    using TileB = StagedTile<TRANS_B ? BN : BK, TRANS_B ? BK : BN, THREADS, TRANS_B ? PAIRED : CONTIGUOUS>;

    TileA a;
    TileB b;
    const float *A, *B;  // where this thread begins in the next tiles
    const int lda, ldb;
    const int rows, cols;  // of C from the block's tile on
    const bool a_vectors, b_vectors;
    const bool inside;  // all tiles of this block are aligned, and none crosses an edge along M or N

    __device__ __forceinline__ StagedPair(
        const float* first_a, int lda, const float* first_b, int ldb, Tile tile, int M, int N)
        : A(TileA::begin(first_a + (TRANS_A ? tile.row : tile.row * static_cast<Offset>(lda)), lda)),
          B(TileB::begin(first_b + (TRANS_B ? tile.col * static_cast<Offset>(ldb) : tile.col), ldb)),
          lda(lda),
          ldb(ldb),
          rows(M - tile.row),
          cols(N - tile.col),
          a_vectors(rows_are_aligned(first_a, lda)),
          b_vectors(rows_are_aligned(first_b, ldb)),
          inside(a_vectors && b_vectors && rows >= BM && cols >= BN)
    {
    }

    // Starts the loads of the next tiles and moves on. `left` of their steps exist, which may be more than BK; with none
    // (0 or less) nothing is read. All threads of a block go the same way: with constants in place of the extents the
    // compiler drops every comparison, and whole tiles are loads alone.
    __device__ __forceinline__ void fetch(int left)
    {
        if (inside && left >= BK) {
            a.fetch_from(A, lda, ALL, ALL, true);
            b.fetch_from(B, ldb, ALL, ALL, true);
        } else {
            a.fetch_from(A, lda, TRANS_A ? left : rows, TRANS_A ? rows : left, a_vectors);
            b.fetch_from(B, ldb, TRANS_B ? cols : left, TRANS_B ? left : cols, b_vectors);
        }
        A += TRANS_A ? BK * static_cast<Offset>(lda) : BK;
        B += TRANS_B ? BK : BK * static_cast<Offset>(ldb);
    }

    // Waits for what was fetched.
    __device__ __forceinline__ void put(float* As, float* Bs) const
    {
        a.template put<A_LD, !TRANS_A>(As);
        b.template put<B_LD, TRANS_B>(Bs);
    }
};
