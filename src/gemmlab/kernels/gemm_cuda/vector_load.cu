/* gemmlab
summary = "8 x 8 results a thread, float4 between global memory and registers"
idea = "One instruction moves 16 bytes instead of 4: a quarter of the requests for the same tiles."
source = "Korean worklog on CUDA matmul: its kernel 5; Chinese SGEMM profiling notes: load orders of kernels 3 and 4"
op = "gemm"
after = "thread_tile_2d"
arch = "sm_75"
transposes = ["nn", "nt", "tn", "tt"]
grid = "ceil_div(M, BM) * ceil_div(N, BN)"
threads = "(BM // TM) * (BN // TN)"
require = [
    "min(BM, BN, BK, TM, TN) >= 1 and BM % TM == 0 and BN % TN == 0",
    "BM % 4 == 0 and BK % 4 == 0 and TN % 4 == 0",
    "BM * BK % (4 * (BM // TM) * (BN // TN)) == 0",
    "BN * BK % (4 * (BM // TM) * (BN // TN)) == 0",
    "0 <= TRANSPOSE_A <= 1 and 0 <= A_ORDER <= 1 and 0 <= PAD <= 8",
    "TRANSPOSE_A == 1 or A_ORDER == 0",  # A that is not turned has no conflicts to avoid
    "4 * (BK * BN + max(BK * (BM + PAD), BM * (BK + PAD))) <= 49152",
]
expect = [
    { shape = "256x256x64", that = "128 * global_load_requests == M * N * K // BM + M * N * K // BN" },
    { shape = "256x256x64", that = "executed_LDG_128 == global_load_requests" },
    { shape = "256x256x64", that = "executed_STG_128 == global_store_requests" },
    { shape = "256x256x64", that = "128 * global_store_requests == M * N" },
    { shape = "256x256x64", config = { BM = 64, BN = 64 }, that = "executed_LDG_128 == global_load_requests" },
    # Turning A on its way in costs bank conflicts, unless rows of As are padded, or loaded in the other order, which
    # fetches a sector for every lane.
    { config = { A_ORDER = 0 }, that = "shared_store_excess > 0 and global_load_sectors_per_request == 16" },
    { config = { A_ORDER = 1 }, that = "shared_store_excess == 0 and global_load_sectors_per_request == 24" },
    { config = { PAD = 4 }, that = "shared_store_excess == 0 and global_load_sectors_per_request == 16" },
]

[params]
BM = 128
BN = 128
BK = 8
TM = 8
TN = 8
TRANSPOSE_A = 1  # As in shared memory: 1 k-major, so that a column of A is read as vectors; 0 as A is
PAD = 0          # floats added to the rows of As
A_ORDER = 0      # who loads what of A: 0 lanes along its rows (neighbours in global memory), 1 down them (in shared)

[tune]
BM = [64, 128]
BN = [64, 128]
TRANSPOSE_A = [0, 1]
PAD = [0, 4]
A_ORDER = [0, 1]
*/

#include "epilogue.cuh"
#include "fragment.cuh"
#include "tile.cuh"
#include "tile_load.cuh"

//   shared memory, TRANSPOSE_A = 1                      a step k of the product
//
//        As[BK][BM + PAD]    Bs[BK][BN]                             Bs[k]  . . [TN] . .
//   k=0  [a a a a ... a]     [b b b b ... b]                        .
//   k=1  [a a a a ... a]     [b b b b ... b]             As[k]      .      +--TN--+
//    :                                                   (down)   [TM]     |      | TM    TM x TN sums
//                                                                   .      +------+       a thread
//
// op(A) and op(B) may be stored transposed; then the tile is, too, and goes into the same place in shared memory:
//
//                 stored tile     into As (k-major)          stored tile      into Bs (k-major)
//   TRANS = 0     BM x BK         turned, four words apart   BK x BN          as it is, float4
//   TRANS = 1     BK x BM         as it is, float4           BN x BK          turned, four words apart
template <
    int BM, int BN, int BK, int TM, int TN, int TRANSPOSE_A, int PAD, int A_ORDER, bool TRANS_A, bool TRANS_B>
__global__ void __launch_bounds__((BM / TM) * (BN / TN)) vector_load(
    int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc)
{
    constexpr int THREADS = (BM / TM) * (BN / TN);
    constexpr int A_LD = (TRANSPOSE_A ? BM : BK) + PAD;
    __shared__ __align__(16) float As[(TRANSPOSE_A ? BK : BM) * A_LD];
    __shared__ __align__(16) float Bs[BK * BN];

    const Tile tile = tile_of_block<BM, BN>(N);
    const int rows = M - tile.row, cols = N - tile.col;  // of C from this tile on
    const int x = threadIdx.x % (BN / TN) * TN;          // [0, BN) in steps of TN: first column in the tile
    const int y = threadIdx.x / (BN / TN) * TM;          // [0, BM) in steps of TM: first row in the tile
    const bool a_vectors = rows_are_aligned(A, lda), b_vectors = rows_are_aligned(B, ldb);
    A += TRANS_A ? tile.row : tile.row * static_cast<Offset>(lda);
    B += TRANS_B ? tile.col * static_cast<Offset>(ldb) : tile.col;

    float sums[TM][TN] = {};
    for (int left = sum_depth(K, alpha); left > 0; left -= BK) {
        // Both tiles are on their way before the first is waited for.
        StagedTile<TRANS_A ? BK : BM, TRANS_A ? BM : BK, THREADS, A_ORDER> a_tile;
        StagedTile<TRANS_B ? BN : BK, TRANS_B ? BK : BN, THREADS> b_tile;
        a_tile.fetch(A, lda, TRANS_A ? left : rows, TRANS_A ? rows : left, a_vectors);
        b_tile.fetch(B, ldb, TRANS_B ? cols : left, TRANS_B ? left : cols, b_vectors);
        __syncthreads();  // before these overwrite the last tiles
        a_tile.template put<A_LD, (TRANSPOSE_A != 0) != TRANS_A>(As);
        b_tile.template put<BN, TRANS_B>(Bs);
        A += TRANS_A ? BK * static_cast<Offset>(lda) : BK;
        B += TRANS_B ? BK : BK * static_cast<Offset>(ldb);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            float a_frag[TM], b_frag[TN];
#pragma unroll
            for (int i = 0; i < TM; ++i) a_frag[i] = TRANSPOSE_A ? As[k * A_LD + y + i] : As[(y + i) * A_LD + k];
#pragma unroll
            for (int j = 0; j < TN; ++j) b_frag[j] = Bs[k * BN + x + j];
            add_outer_product(sums, a_frag, b_frag);
        }
    }

    C += (tile.row + y) * static_cast<Offset>(ldc) + tile.col + x;
    store_tile(C, ldc, rows - y, cols - x, rows_are_aligned(C, ldc), alpha, sums, beta);
}
