/* gemmlab
summary = "a thread owns a column of TM results"
idea = "A word of Bs serves TM multiply-adds from a register: 1 + TM shared words for TM products instead of 2 * TM."
source = "Korean worklog on CUDA matmul: its kernel 3"
op = "gemm"
after = "block_tile"
arch = "sm_75"
params = { BM = 64, BN = 64, BK = 8, TM = 8, UNROLL = 64 }  # UNROLL: steps of k in the code at most
tune = { BM = [32, 64, 128], BN = [32, 64, 128], TM = [4, 8, 16], UNROLL = [4, 64] }
require = [
    "min(BM, BN, BK, TM, UNROLL) >= 1 and BM % TM == 0",
    "BM // TM * BN <= 1024 and BM // TM * BN >= 128 and BN % BK == 0",
    "BM // TM * BN <= (1024 if TM < 8 else 512)",  # 1024 threads have 64 registers each
    "4 * BK * (BM + BN) <= 49152",
]
grid = "ceil_div(M, BM) * ceil_div(N, BN)"
threads = "BM // TM * BN"
expect = [
    # Words of shared memory that the threads read: (1 + TM) / TM a multiply-add, 9K/8 an element, where block_tile
    # reads 2K. The instructions are fewer: the compiler joins four steps k of a row of As, so of 4 + TM loads for four
    # steps TM are LDS.128.
    { shape = "64x128x64", that = "32 * TM * (executed_LDS + 3 * executed_LDS_128) == (1 + TM) * M * N * K" },
    { shape = "64x128x64", that = "4 * executed_LDS_128 == TM * (executed_LDS - executed_LDS_128)" },
    { shape = "64x128x64", config = { TM = 4 }, that = "128 * (executed_LDS + 3 * executed_LDS_128) == 5 * M * N * K" },
    "shared_load_excess == 0",
    "shared_store_excess == 0",
    { shape = "64x128x64", that = "32 * global_load_requests == M * N * K // BM + M * N * K // BN" },
    { shape = "64x128x64", that = "global_load_sectors_per_request == 4 and global_store_sectors_per_request == 4" },
]
*/

#include "epilogue.cuh"
#include "specialize.cuh"
#include "tile.cuh"

//                          Bs  BK x BN            a step k of the product
//                    k  [. . . . b . . . .]
//                                                 b = Bs[k][x] is read once into a register and multiplied with TM
//      As  BM x BK                |               words of column k of As, for the TM sums of the thread
//           k
//         [ . ]                   |               a warp is 32 neighbours in a row of C: what it reads of As is one
//    y    [ a ] - - - - - - - -  [c]              address for all lanes, and of Bs 32 words in 32 banks
//         [ a ]    TM            [c]
//         [ a ] - - - - - - - -  [c]
//         [ . ]
template <int BM, int BN, int BK, int TM, int UNROLL>
__global__ void __launch_bounds__(BM / TM * BN) thread_tile_1d(
    int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc)
{
    constexpr int THREADS = BM / TM * BN;
    constexpr int A_ROWS = THREADS / BK, B_ROWS = THREADS / BN;  // rows of As and Bs that the block brings at a time
    constexpr int A_COUNT = (BM + A_ROWS - 1) / A_ROWS, B_COUNT = (BK + B_ROWS - 1) / B_ROWS;  // words a thread brings
    __shared__ __align__(16) float As[BM][BK];
    __shared__ __align__(16) float Bs[BK][BN];

    const Tile tile = tile_of_block<BM, BN>(N);
    const int rows = M - tile.row, cols = N - tile.col;            // of C from this tile on
    const int x = threadIdx.x % BN, y = threadIdx.x / BN * TM;     // [0, BN), [0, BM) in steps of TM: first result
    const int a_col = threadIdx.x % BK, a_row = threadIdx.x / BK;  // [0, BK), [0, A_ROWS): its first word of As,
    const int b_col = threadIdx.x % BN, b_row = threadIdx.x / BN;  // [0, BN), [0, B_ROWS): and of Bs
    A += tile.row * static_cast<Offset>(lda);
    B += tile.col;
    const float* a_from = A + a_row * static_cast<Offset>(lda) + a_col;
    const float* b_from = B + b_row * static_cast<Offset>(ldb) + b_col;

    float sums[TM] = {};
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
            const float b = Bs[k][x];
#pragma unroll
            for (int i = 0; i < TM; ++i) sums[i] += As[y + i][k] * b;
        }
    }
    C += (tile.row + y) * static_cast<Offset>(ldc) + tile.col + x;
#pragma unroll
    for (int i = 0; i < TM; ++i)
        if (i < rows - y && x < cols) store_element(C + i * static_cast<Offset>(ldc), alpha, sums[i], beta);
}
