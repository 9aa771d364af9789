/* gemmlab
summary = "two tiles of each matrix in shared memory: one is multiplied while the next one is loaded"
idea = "While a k-block is multiplied the next one is loaded, and a k-block takes one barrier instead of two."
source = "Chinese SGEMM notes: version 5; Chinese compilation on SGEMM: its kernel with prefetch; CUDA GEMM notes: 6"
op = "gemm"
after = "register_stage"
arch = "sm_75"
grid = "ceil_div(M, BM) * ceil_div(N, BN)"
threads = "(BM // TM) * (BN // TN)"
require = [
    "min(BM, BN, BK, TM, TN) >= 1 and BM % TM == 0 and BN % TN == 0",
    "BM % 4 == 0 and BN % 4 == 0 and BK % 8 == 0 and TM % 4 == 0 and TN % 4 == 0",
    "BM * BK % (4 * (BM // TM) * (BN // TN)) == 0",
    "BN * BK % (4 * (BM // TM) * (BN // TN)) == 0",
    "BK == 8 or TM * TN <= 32 or (BM // TM) * (BN // TN) < 256",  # registers: two blocks of 256 threads have 128 each
    "1 <= BUFFERS <= 2",
    "4 * BUFFERS * BK * (BM + 4 + BN + 4) <= 49152",
]
expect = [
    # A warp has 32 * TM * TN results and meets the others once a k-block; without the second buffer once more between
    # two of them.
    { shape = "128x256x64", that = "32 * TM * TN * barriers == M * N * ceil_div(K, BK)" },
    { shape = "128x256x64", config = { BUFFERS = 1 }, that = "32 * TM * TN * barriers == M * N * (2 * K // BK - 1)" },
    { shape = "128x256x64", config = { BM = 64, BN = 64 }, that = "32 * TM * TN * barriers == M * N * (K // BK)" },
    { shape = "128x256x64", that = "executed_LDS_128 == shared_load_requests and shared_store_excess == 0" },
    { shape = "128x256x64", that = "128 * global_load_requests == M * N * K // BM + M * N * K // BN" },
    # What it does not mend: threads beside each other read words of Bs that lie TN apart, two lanes a bank.
    { shape = "128x256x64", that = "256 * shared_load_excess == M * N * K" },
]

[params]
BM = 128
BN = 128
BK = 8
TM = 8
TN = 8
BUFFERS = 2  # 1: without the second tile in shared memory, and so with a second barrier a k-block

[tune]
BM = [64, 128]
BN = [64, 128]
BK = [8, 16]
TM = [4, 8]
BUFFERS = [1, 2]
*/

#include "epilogue.cuh"
#include "four.cuh"
#include "fragment.cuh"
#include "pieces.cuh"
#include "residency.cuh"
#include "specialize.cuh"
#include "tile.cuh"

//   global memory     | load tile 1 ............... | load tile 2 ............... |        on their way while
//   arithmetic        | 0 | 1 | 2 |  tile 0   | 7   | 0 | 1 | 2 |  tile 1   | 7   |        a k-block is multiplied
//   shared memory    [0]|                 store [1] |                 store [0] |        steps k = 0 .. BK - 1
//                     ^                           ^                           ^
//                     barrier                     barrier                     barrier
//
// One barrier a k-block is enough. Tile t + 1 takes the place of tile t - 1, after the barrier before tile t. A warp
// reaches that barrier when it has the last words of tile t - 1 in registers. The words of step k + 1 are read while
// step k is multiplied, those of step 0 right after the barrier, while the last step of the tile before is multiplied.
template <int BM, int BN, int BK, int TM, int TN, int BUFFERS>
__global__ void __launch_bounds__((BM / TM) * (BN / TN), resident_blocks(BM, BN, BK, (BM / TM) * (BN / TN)))
double_buffer(
    int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc)
{
    constexpr int THREADS = (BM / TM) * (BN / TN);
    using APieces = Pieces<BM, BK, THREADS, true>;  // A is transposed, and rows are padded
    using BPieces = Pieces<BN, BK, THREADS, false>;
    constexpr int A_LD = APieces::LD, B_LD = BPieces::LD;
    constexpr int STAGE = APieces::WORDS + BPieces::WORDS;
    __shared__ __align__(16) float shared[BUFFERS * STAGE];  // so many buffers, each a tile of A and one of B

    const Tile tile = tile_of_block<BM, BN>(N);
    const int rows = M - tile.row, cols = N - tile.col;  // of C from this tile on
    const int x = threadIdx.x % (BN / TN) * TN;          // [0, BN) in steps of TN: first column in the tile
    const int y = threadIdx.x / (BN / TN) * TM;          // [0, BM) in steps of TM: first row in the tile
    const bool a_vectors = rows_are_aligned(A, lda), b_vectors = rows_are_aligned(B, ldb);
    const bool inside = a_vectors && b_vectors && rows >= BM && cols >= BN;  // all tiles, but along k
    APieces a(A + tile.row * static_cast<Offset>(lda), lda, blockDim.y);  // 128 registers are just enough
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
    const auto put = [&](float* stage) {
#pragma unroll
        for (int i = 0; i < APieces::COUNT; ++i)
            put_four<true, A_LD>(&stage[a.word(i)], a_next[i]);
#pragma unroll
        for (int i = 0; i < BPieces::COUNT; ++i)
            put_four<false, B_LD>(&stage[APieces::WORDS + b.word(i)], b_next[i]);
    };

    float sums[TM][TN] = {};
    float a_frag[2][TM], b_frag[2][TN];  // of step k in [k % 2]
    const auto read = [&](const float* stage, int k) {
        load_fragment(a_frag[k % 2], &stage[k * A_LD + y]);
        load_fragment(b_frag[k % 2], &stage[APieces::WORDS + k * B_LD + x]);
    };
    const auto multiply = [&](int k) {
#pragma unroll
        for (int i = 0; i < TM; ++i)
#pragma unroll
            for (int j = 0; j < TN; ++j) sums[i][j] += a_frag[k % 2][i] * b_frag[k % 2][j];
    };

    int left = sum_depth(K, alpha);
    if (left > 0) {
        float* now = shared;                           // the buffer that is computed with
        float* next = shared + (BUFFERS - 1) * STAGE;  // the one that the next tiles go to
        fetch(left);
        put(now);
        __syncthreads();
        read(now, 0);
        for (;; left -= BK) {
            fetch(left - BK);
#pragma unroll
            for (int k = 0; k < BK - 1; ++k) {
                read(now, k + 1);
                multiply(k);
            }
            if (left <= BK) break;
            if (BUFFERS == 1) __syncthreads();  // before the next tiles overwrite these
            put(next);
            __syncthreads();
            float* const last = now;
            now = next;
            next = last;
            read(now, 0);
            multiply(BK - 1);  // the last step's products fill the wait for these words
        }
        multiply(BK - 1);
    }

    C += (tile.row + y) * static_cast<Offset>(ldc) + tile.col + x;
    store_tile(C, ldc, rows - y, cols - x, rows_are_aligned(C, ldc), alpha, sums, beta);
}
