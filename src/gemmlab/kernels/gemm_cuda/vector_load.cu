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

[search]
BM = [32, 64, 128, 256]
BN = [32, 64, 128, 256]
BK = [8, 16, 32]
TM = [4, 8, 16]
TN = [4, 8]
*/

#include "epilogue.cuh"
#include "four.cuh"
#include "tile.cuh"

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
//   TRANS = 0     BM x BK         transposed, word by word   BK x BN          as it is, float4
//   TRANS = 1     BK x BM         as it is, float4           BN x BK          transposed, word by word
template <
    int BM, int BN, int BK, int TM, int TN, int TRANSPOSE_A, int PAD, int A_ORDER, bool TRANS_A, bool TRANS_B>
__global__ void __launch_bounds__((BM / TM) * (BN / TN)) vector_load(
    int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc)
{
    constexpr int THREADS = (BM / TM) * (BN / TN);
    constexpr int A_LD = (TRANSPOSE_A ? BM : BK) + PAD;
    __shared__ __align__(16) float As[(TRANSPOSE_A ? BK : BM) * A_LD];
    __shared__ __align__(16) float Bs[BK * BN];

    // The tiles as they are stored, and the float4 that a thread brings of each.
    constexpr int A_ROWS = TRANS_A ? BK : BM, A_COLS = TRANS_A ? BM : BK, A_COUNT = BM * BK / (4 * THREADS);
    constexpr int B_ROWS = TRANS_B ? BN : BK, B_COLS = TRANS_B ? BK : BN, B_COUNT = BN * BK / (4 * THREADS);
    constexpr bool A_TURNED = (TRANSPOSE_A != 0) != TRANS_A;

    const Tile tile = tile_of_block<BM, BN>(N);
    const int rows = M - tile.row, cols = N - tile.col;  // of C from this tile on
    const int x = threadIdx.x % (BN / TN) * TN;          // [0, BN) in steps of TN: first column in the tile
    const int y = threadIdx.x / (BN / TN) * TM;          // [0, BM) in steps of TM: first row in the tile
    const bool a_vectors = rows_are_aligned(A, lda), b_vectors = rows_are_aligned(B, ldb);
    // Row and column of the thread's i-th float4 in the stored tile.
    const auto a_row = [](int i) -> int {
        const unsigned at = threadIdx.x + i * THREADS;
        return A_ORDER == 0 ? at / (A_COLS / 4) : at % A_ROWS;
    };
    const auto a_col = [](int i) -> int {
        const unsigned at = threadIdx.x + i * THREADS;
        return 4 * (A_ORDER == 0 ? at % (A_COLS / 4) : at / A_ROWS);
    };
    const auto b_row = [](int i) -> int { return (threadIdx.x + i * THREADS) / (B_COLS / 4); };
    const auto b_col = [](int i) -> int { return 4 * ((threadIdx.x + i * THREADS) % (B_COLS / 4)); };
    A += TRANS_A ? tile.row : tile.row * static_cast<Offset>(lda);
    B += TRANS_B ? tile.col * static_cast<Offset>(ldb) : tile.col;

    float sums[TM][TN] = {};
    for (int left = sum_depth(K, alpha); left > 0; left -= BK) {
        // From global memory into registers; zeros where a matrix has ended. Both tiles are on their way before the
        // first is waited for.
        const int a_rows = TRANS_A ? left : rows, a_cols = TRANS_A ? rows : left;
        const int b_rows = TRANS_B ? cols : left, b_cols = TRANS_B ? left : cols;
        float4 a_next[A_COUNT], b_next[B_COUNT];
#pragma unroll
        for (int i = 0; i < A_COUNT; ++i) {
            const int row = a_row(i), col = a_col(i);
            a_next[i] =
                load_four(A + row * static_cast<Offset>(lda) + col, row < a_rows ? a_cols - col : 0, a_vectors);
        }
#pragma unroll
        for (int i = 0; i < B_COUNT; ++i) {
            const int row = b_row(i), col = b_col(i);
            b_next[i] =
                load_four(B + row * static_cast<Offset>(ldb) + col, row < b_rows ? b_cols - col : 0, b_vectors);
        }
        A += TRANS_A ? BK * static_cast<Offset>(lda) : BK;
        B += TRANS_B ? BK : BK * static_cast<Offset>(ldb);

        __syncthreads();  // before these overwrite the last tiles
#pragma unroll
        for (int i = 0; i < A_COUNT; ++i)
            put_four<A_TURNED, A_LD>(
                &As[A_TURNED ? a_col(i) * A_LD + a_row(i) : a_row(i) * A_LD + a_col(i)], a_next[i]);
#pragma unroll
        for (int i = 0; i < B_COUNT; ++i)
            put_four<TRANS_B, BN>(&Bs[TRANS_B ? b_col(i) * BN + b_row(i) : b_row(i) * BN + b_col(i)], b_next[i]);
        __syncthreads();

#pragma unroll
        for (int k = 0; k < BK; ++k) {
            float a_frag[TM], b_frag[TN];
#pragma unroll
            for (int i = 0; i < TM; ++i) a_frag[i] = TRANSPOSE_A ? As[k * A_LD + y + i] : As[(y + i) * A_LD + k];
#pragma unroll
            for (int j = 0; j < TN; ++j) b_frag[j] = Bs[k * BN + x + j];
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TN; ++j) sums[i][j] += a_frag[i] * b_frag[j];
        }
    }

    C += (tile.row + y) * static_cast<Offset>(ldc) + tile.col + x;
    store_tile(C, ldc, rows - y, cols - x, rows_are_aligned(C, ldc), alpha, sums, beta);
}
