/* gemmlab
summary = "fragments of both tiles staged in registers by 128-bit shared loads"
idea = "Fragments are loaded by LDS.128, as the compiler did already; the gain comes from whole tiles without guards."
source = "Chinese summary of SGEMM versions: its v4; Chinese SGEMM write-up: the fragments of its tiled kernel"
op = "gemm"
after = "vector_load"
arch = "sm_75"
params = { BM = 128, BN = 128, BK = 8, TM = 8, TN = 8 }
tune = { BM = [64, 128], BN = [64, 128], BK = [8, 16], TM = [4, 8], TN = [4, 8] }
require = [
    "min(BM, BN, BK, TM, TN) >= 1 and BM % TM == 0 and BN % TN == 0 and TM % 4 == 0 and TN % 4 == 0",
    "BM // TM * (BN // TN) >= 64 and BM // TM * (BN // TN) <= 512",
    "BM * BK % (4 * (BM // TM) * (BN // TN)) == 0 and BN * BK % (4 * (BM // TM) * (BN // TN)) == 0",
]
grid = "ceil_div(M, BM) * ceil_div(N, BN)"
threads = "BM // TM * (BN // TN)"
expect = [
    "executed_LDS_128 == executed_LDS and 128 * TM * TN * executed_LDS_128 == (TM + TN) * M * N * K",
    { config = { BK = 16, TM = 4 }, that = "8 * 128 * executed_LDS_128 == 3 * M * N * K" },
    # A is turned on its way in without the conflicts of vector_load, and no sector is asked for twice;
    "shared_store_excess == 0 and global_load_sectors_per_request == 16",
    # those of the loads stay: 2 for 512 products, 268,435,456 at 4096.
    "512 * l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum == 2 * M * N * K",
    { shape = "256x256x64", that = "128 * global_load_requests == M * N * K // BM + M * N * K // BN" },
    { shape = "256x256x64", that = "executed_LDG_128 == global_load_requests" },
    { shape = "256x256x64", that = "executed_STG_128 == global_store_requests" },
]
*/

#include "epilogue.cuh"
#include "four.cuh"
#include "fragment.cuh"
#include "pieces.cuh"
#include "residency.cuh"
#include "specialize.cuh"
#include "tile.cuh"

//   shared memory                             registers of a thread
//
//   As[k][y ..]  [a a a a|a a a a]  LDS.128 x 2 -> a_frag[TM] -+     every word that a step needs is in a register
//                                                            x-> sums[TM][TN]      before its TM * TN multiply-adds
//   Bs[k][x ..]  [b b b b|b b b b]  LDS.128 x 2 -> b_frag[TN] -+
//
// The compiler had done this by itself. Where the tiles lie so that words stand side by side it joins scalar loads:
// per k-block of 8 the loops of thread_tile_2d (As as A lies: four steps of a row at once), of vector_load and of this
// rung have the same 32 LDS.128 and 512 FFMA, on sm_80, sm_89 and sm_90. Explicit vectors make this certain, and make a
// misaligned pointer an error. This rung is faster for another reason: whole tiles come through code without guards,
// and A is transposed without bank conflicts: 563 instructions a warp and k-block, not 583 (sm_90).
template <int BM, int BN, int BK, int TM, int TN>
__global__ void __launch_bounds__((BM / TM) * (BN / TN), resident_blocks(BM, BN, BK, (BM / TM) * (BN / TN)))
register_stage(
    int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc)
{
    constexpr int THREADS = (BM / TM) * (BN / TN);
    using APieces = Pieces<BM, BK, THREADS, true>;  // A is transposed, and rows are padded
    using BPieces = Pieces<BN, BK, THREADS, false>;
    constexpr int A_LD = APieces::LD, B_LD = BPieces::LD;
    __shared__ __align__(16) float As[BK * A_LD];
    __shared__ __align__(16) float Bs[BK * B_LD];

    const Tile tile = tile_of_block<BM, BN>(N);
    const int rows = M - tile.row, cols = N - tile.col;  // of C from this tile on
    const int x = threadIdx.x % (BN / TN) * TN;          // [0, BN) in steps of TN: first column in the tile
    const int y = threadIdx.x / (BN / TN) * TM;          // [0, BM) in steps of TM: first row in the tile
    const bool a_vectors = rows_are_aligned(A, lda), b_vectors = rows_are_aligned(B, ldb);
    const bool inside = a_vectors && b_vectors && rows >= BM && cols >= BN;  // all tiles, but along k
    APieces a(A + tile.row * static_cast<Offset>(lda), lda);
    BPieces b(B + tile.col, ldb);

    float4 a_next[APieces::COUNT], b_next[BPieces::COUNT];  // of the next tiles, on their way
    const auto fetch = [&](int left) {                      // `left` terms exist: more than BK, or none at all
        specialize(inside && left >= BK, [&](auto whole) {
#pragma unroll
            for (int i = 0; i < APieces::COUNT; ++i)
                a_next[i] = load_four(a.piece(i), whole ? 4 : a.existing(i, rows, left), whole || a_vectors);
#pragma unroll
            for (int i = 0; i < BPieces::COUNT; ++i)
                b_next[i] = load_four(b.piece(i), whole ? 4 : b.existing(i, cols, left), whole || b_vectors);
        });
        a.advance();
        b.advance();
    };
    const auto put = [&] {
#pragma unroll
        for (int i = 0; i < APieces::COUNT; ++i)
            put_four<true, A_LD>(&As[a.word(i)], a_next[i]);
#pragma unroll
        for (int i = 0; i < BPieces::COUNT; ++i)
            put_four<false, B_LD>(&Bs[b.word(i)], b_next[i]);
    };

    float sums[TM][TN] = {};
    for (int left = sum_depth(K, alpha); left > 0; left -= BK) {
        fetch(left);
        __syncthreads();  // before these overwrite the last tiles
        put();
        __syncthreads();
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            float a_frag[TM], b_frag[TN];
            load_fragment(a_frag, &As[k * A_LD + y]);
            load_fragment(b_frag, &Bs[k * B_LD + x]);
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TN; ++j) sums[i][j] += a_frag[i] * b_frag[j];
        }
    }

    C += (tile.row + y) * static_cast<Offset>(ldc) + tile.col + x;
    store_tile(C, ldc, rows - y, cols - x, rows_are_aligned(C, ldc), alpha, sums, beta);
}
