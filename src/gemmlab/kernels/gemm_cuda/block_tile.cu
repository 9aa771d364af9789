/* gemmlab
summary = "tiles of A and B in shared memory, one thread an element"
idea = "A block reads each element of its tiles once from global memory and uses it BN or BM times from shared memory."
source = "Korean worklog on CUDA matmul: its kernel 2; Chinese SGEMM profiling notes: their kernel 1"
op = "gemm"
in_order = true
after = "naive"
arch = "sm_75"
params = { BM = 32, BN = 32, BK = 32, UNROLL = 64 }  # UNROLL: steps of k in the code at most
tune = { BM = [8, 16, 32], BN = [32, 64], BK = [8, 16, 32, 64], UNROLL = [4, 64] }
require = ["min(BM, BN, BK, UNROLL) >= 1", "BM * BN <= 1024", "BM * BN % BK == 0", "4 * BK * (BM + BN) <= 49152"]
grid = "ceil_div(M, BM) * ceil_div(N, BN)"
threads = "BM * BN"
expect = [
    { shape = "64x96x64", that = "32 * global_load_requests == M * N * K // BM + M * N * K // BN" },
    { shape = "64x96x64", that = "global_load_sectors_per_request == 4 and global_store_sectors_per_request == 4" },
    "shared_load_excess == 0",
    "shared_store_excess == 0",
    # Two words of shared memory a multiply-add; As comes four at a time.
    { shape = "64x96x64", that = "32 * (executed_LDS + 3 * executed_LDS_128) == 2 * M * N * K" },
    { shape = "64x96x64", that = "barriers == 2 * ceil_div(K, BK) * M * N // 32" },
]
*/

#include "epilogue.cuh"
#include "specialize.cuh"
#include "tile.cuh"

//                      B   K x N
//                 +------+------+------+
//                 |      |  Bs  |      |  BK     As  BM x BK  of A and  Bs  BK x BN  of B, which move on by BK:
//                 |      +------+      |         As to the right, Bs down
//                 |      |  BN  |      |
//     A  M x K    +------+------+------+         a row of As is read by the BN threads beside each other, a column of
//   +---------+   +------+------+------+         Bs by the BM threads above each other
//   | As  BK  |   |      |  C   | BM   |
//   +---------+   |      +------+      |         a warp is 32 neighbours in a row of C: As[y][k] is one word for all of
//   |         |   |      |      |      |         them, Bs[k][x] are 32 words in 32 banks: no conflicts
//
// To load a tile, adjacent threads take adjacent words, row after row, for as many rows as there are threads. Then each
// goes on as many rows below. A tile of 4 x 7 words by 14 threads: thread 3 loads two words, two rows apart.
//
//    0  1  2 [3] 4  5  6     row of the thread's first word: [0, A_ROWS) with A_ROWS = 14 / 7
//    7  8  9 10 11 12 13
//    0  1  2 [3] 4  5  6
//    7  8  9 10 11 12 13
template <int BM, int BN, int BK, int UNROLL>
__global__ void __launch_bounds__(BM * BN) block_tile(
    int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc)
{
    constexpr int THREADS = BM * BN;
    constexpr int A_ROWS = THREADS / BK, B_ROWS = THREADS / BN;  // rows of As and Bs that the block brings at a time
    constexpr int A_COUNT = (BM + A_ROWS - 1) / A_ROWS, B_COUNT = (BK + B_ROWS - 1) / B_ROWS;  // words a thread brings
    __shared__ __align__(16) float As[BM][BK];
    __shared__ __align__(16) float Bs[BK][BN];

    const Tile tile = tile_of_block<BM, BN>(N);
    const int rows = M - tile.row, cols = N - tile.col;            // of C from this tile on
    const int x = threadIdx.x % BN, y = threadIdx.x / BN;          // [0, BN), [0, BM): column and row in the tile
    const int a_col = threadIdx.x % BK, a_row = threadIdx.x / BK;  // [0, BK), [0, A_ROWS): its first word of As,
    const int b_col = threadIdx.x % BN, b_row = threadIdx.x / BN;  // [0, BN), [0, B_ROWS): and of Bs
    A += tile.row * static_cast<Offset>(lda);
    B += tile.col;
    const float* a_from = A + a_row * static_cast<Offset>(lda) + a_col;
    const float* b_from = B + b_row * static_cast<Offset>(ldb) + b_col;

    float sum = 0.0f;
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
        for (int k = 0; k < BK; ++k) sum += As[y][k] * Bs[k][x];
    }
    if (y < rows && x < cols)
        store_element(C + (tile.row + y) * static_cast<Offset>(ldc) + tile.col + x, alpha, sum, beta);
}
