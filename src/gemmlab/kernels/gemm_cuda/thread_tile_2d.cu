/* gemmlab
summary = "a thread owns TM x TN results"
idea = "TM + TN shared words serve TM * TN multiply-adds from registers: a quarter word each for 8 x 8, not 9/8."
source = "Korean worklog on CUDA matmul: its kernel 4; Chinese SGEMM profiling notes: kernel 2; SGEMM versions: v2"
op = "gemm"
after = "thread_tile_1d"
arch = "sm_75"
params = { BM = 128, BN = 128, BK = 8, TM = 8, TN = 8, UNROLL = 64 }  # UNROLL: steps of k in the code at most
tune = { BM = [64, 128], BN = [64, 128], BK = [8, 16], TM = [4, 8], TN = [4, 8], UNROLL = [4, 64] }
require = [
    "min(BM, BN, BK, TM, TN, UNROLL) >= 1 and BM % TM == 0 and BN % TN == 0 and TN % 4 == 0",
    "BM // TM * (BN // TN) >= 64 and BM // TM * (BN // TN) <= 512",
    "min(BK, UNROLL) * TM * TN <= 512",  # with more steps unrolled the compiler runs out of registers
    "BM // TM * (BN // TN) % BK == 0 and BM // TM * (BN // TN) % BN == 0 and 4 * BK * (BM + BN) <= 49152",
]
grid = "ceil_div(M, BM) * ceil_div(N, BN)"
threads = "BM // TM * (BN // TN)"
expect = [
    # Words of shared memory that the threads read: (TM + TN) / (TM * TN) a multiply-add, K/4 an element for 8 x 8.
    "32 * TM * TN * (executed_LDS + 3 * executed_LDS_128) == (TM + TN) * M * N * K",
    { config = { TM = 4 }, that = "8 * 32 * (executed_LDS + 3 * executed_LDS_128) == 3 * M * N * K" },
    # Neighbours in a warp now begin TN words apart in Bs and TM rows apart in As: bank conflicts, in loads alone. With
    # tiles of 64 x 64 they are 3 for 512 products: the 402,653,184 that a published profile has at 4096.
    "shared_load_excess > 0 and shared_store_excess == 0",
    { config = { BM = 64, BN = 64 }, that = """
      512 * l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum == 3 * M * N * K""" },
    "512 * l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum == 2 * M * N * K",
    { shape = "256x256x64", that = "32 * global_load_requests == M * N * K // BM + M * N * K // BN" },
    "global_load_sectors_per_request == 4 and executed_LDG_128 == 0",
    # A store of a warp puts one word into every TN-th: a sector each.
    "global_store_sectors_per_request == 32 and executed_STG_128 == 0",
]

[search]
BM = [32, 64, 128, 256]
BN = [32, 64, 128, 256]
BK = [4, 8, 16, 32]
TM = [2, 4, 8, 16]
TN = [4, 8, 16]
UNROLL = [4, 16, 64]
*/

#include "epilogue.cuh"
#include "residency.cuh"
#include "specialize.cuh"
#include "tile.cuh"

//                               Bs  BK x BN                   a step k of the product
//                     k  [ . . . . b b b b b b b b . . ]
//                                       TN                    TM words of column k of As and TN of row k of Bs go into
//      As  BM x BK                                            registers; their outer product is added to the sums
//           k              +----------------------+
//         [ . ]            |                      |           As lies as A does. The compiler unrolls along k and reads
//    y    [ a ]            |        c c c c c c c c           four steps of a row of As at once, so that both come by
//         [ a ]  TM        |     TM c c c c c c c c           LDS.128; but lanes above each other are TM * BK words
//         [ a ]            |        c c c c c c c c           apart, in the same banks
//         [ . ]            +----------------------+
template <int BM, int BN, int BK, int TM, int TN, int UNROLL>
__global__ void __launch_bounds__((BM / TM) * (BN / TN), resident_blocks(BM, BN, BK, (BM / TM) * (BN / TN)))
thread_tile_2d(
    int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc)
{
    constexpr int THREADS = (BM / TM) * (BN / TN);
    constexpr int A_ROWS = THREADS / BK, B_ROWS = THREADS / BN;  // rows of As and Bs that the block brings at a time
    constexpr int A_COUNT = (BM + A_ROWS - 1) / A_ROWS, B_COUNT = (BK + B_ROWS - 1) / B_ROWS;  // words a thread brings
    __shared__ __align__(16) float As[BM][BK];
    __shared__ __align__(16) float Bs[BK][BN];

    const Tile tile = tile_of_block<BM, BN>(N);
    const int rows = M - tile.row, cols = N - tile.col;            // of C from this tile on
    const int x = threadIdx.x % (BN / TN) * TN;                    // [0, BN) in steps of TN: first result's column
    const int y = threadIdx.x / (BN / TN) * TM;                    // [0, BM) in steps of TM: and row
    const int a_col = threadIdx.x % BK, a_row = threadIdx.x / BK;  // [0, BK), [0, A_ROWS): its first word of As,
    const int b_col = threadIdx.x % BN, b_row = threadIdx.x / BN;  // [0, BN), [0, B_ROWS): and of Bs
    A += tile.row * static_cast<Offset>(lda);
    B += tile.col;
    const float* a_from = A + a_row * static_cast<Offset>(lda) + a_col;
    const float* b_from = B + b_row * static_cast<Offset>(ldb) + b_col;

    float sums[TM][TN] = {};
    for (int left = sum_depth(K, alpha); left > 0; left -= BK) {
        // From global memory into registers; zeros where a matrix has ended.
        float a_next[A_COUNT], b_next[B_COUNT];
        specialize(rows >= BM && cols >= BN && left >= BK, [&](auto whole) {
#pragma unroll
            for (int i = 0; i < A_COUNT; ++i) {
                const int row = a_row + i * A_ROWS;
                const bool exists = (BM % A_ROWS == 0 || row < BM) && (whole || (row < rows && a_col < left));
                a_next[i] = exists ? a_from[i * A_ROWS * static_cast<Offset>(lda)] : 0.0f;
            }
#pragma unroll
            for (int i = 0; i < B_COUNT; ++i) {
                const int row = b_row + i * B_ROWS;
                const bool exists = (BK % B_ROWS == 0 || row < BK) && (whole || (row < left && b_col < cols));
                b_next[i] = exists ? b_from[i * B_ROWS * static_cast<Offset>(ldb)] : 0.0f;
            }
        });
        a_from += BK;
        b_from += BK * static_cast<Offset>(ldb);

        __syncthreads();  // no thread reads the last tiles any more
#pragma unroll
        for (int i = 0; i < A_COUNT; ++i)
            if (BM % A_ROWS == 0 || a_row + i * A_ROWS < BM) As[a_row + i * A_ROWS][a_col] = a_next[i];
#pragma unroll
        for (int i = 0; i < B_COUNT; ++i)
            if (BK % B_ROWS == 0 || b_row + i * B_ROWS < BK) Bs[b_row + i * B_ROWS][b_col] = b_next[i];
        __syncthreads();  // everybody sees these

#pragma unroll UNROLL
        for (int k = 0; k < BK; ++k) {
            float a_frag[TM], b_frag[TN];
#pragma unroll
            for (int i = 0; i < TM; ++i) a_frag[i] = As[y + i][k];
#pragma unroll
            for (int j = 0; j < TN; ++j) b_frag[j] = Bs[k][x + j];
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TN; ++j) sums[i][j] += a_frag[i] * b_frag[j];
        }
    }
    C += (tile.row + y) * static_cast<Offset>(ldc) + tile.col + x;
    store_tile(C, ldc, rows - y, cols - x, false, alpha, sums, beta);
}
