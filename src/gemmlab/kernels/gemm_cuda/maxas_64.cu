/* gemmlab
summary = "the Maxwell design, 64 threads for 64 x 64: one warp loads A and one B, through textures"
idea = "A thread follows one matrix with four tracks of 32 bits; small tiles give small matrices enough blocks."
source = "Chinese notes on SGEMM, the Maxwell assembler's walk-through: its 64-thread implementation"
op = "gemm"
after = "maxas_256"
arch = "sm_75"
transposes = ["tn", "nn", "nt", "tt"]
grid = "ceil_div(M, BM) * ceil_div(N, BN)"
threads = "BM * BN // 64"
require = [
    "BM == 64 and BN == 64 and BK == 8",
    "0 <= SPLIT <= 1 and 0 <= LANE_MAP <= 1 and 0 <= COALESCE <= 1 and 0 <= TEXTURE <= 1",
]
expect = [
    # 32 lanes fetch four floats each; nothing else reads A and B.
    "128 * texture_load_requests == M * N * K // BM + M * N * K // BN and global_load_requests == 0",
    { config = { TEXTURE = 0 }, that = "128 * global_load_requests == M * N * K // BM + M * N * K // BN" },
    { config = { TEXTURE = 0 }, that = "executed_TLD == 0 and global_load_requests <= executed_LDG_128" },
    { shape = "64x128x72", config = { SPLIT = 0 }, that = "128 * texture_load_requests == M * N * K // 32" },
    "shared_load_excess == 0 and shared_store_excess == 0",
    { config = { COALESCE = 0 }, that = "shared_load_wavefronts == 2 * executed_LDS_128" },
    { config = { COALESCE = 0, LANE_MAP = 0 }, that = "shared_load_wavefronts == 3 * executed_LDS_128" },
    # Warps store 32 neighbours, or 8 times 4 in each of four rows.
    "global_store_sectors_per_request == 4 and 32 * global_store_requests == M * N",
    { config = { COALESCE = 0 }, that = "global_store_sectors_per_request == 16 and executed_STG_128 == M * N // 128" },
    # A warp has 32 * 64 results.
    { shape = "64x128x72", that = "2048 * barriers == M * N * ceil_div(K, BK)" },
]

[params]
BM = 64
BN = 64
BK = 8
SPLIT = 1     # 1 half of the threads load A and half B, 0 all load both
LANE_MAP = 1  # 1 z-order, 0 a scan: lanes row after row
COALESCE = 1  # 1 C is turned in shared memory so that a warp stores 32 neighbours, 0 each thread stores its 4 x 4
TEXTURE = 1   # 1 by texture fetches where there are textures, 0 by LDG

[tune]
SPLIT = [0, 1]
LANE_MAP = [0, 1]
COALESCE = [0, 1]
TEXTURE = [0, 1]
*/

#include "maxas.cuh"

//   who loads                                      who computes: two warps, 16 x 32 first quarters each
//
//     warp 0   A, 8 x 64: four float4 a lane                0              32             63
//     warp 1   B, 8 x 64: four float4 a lane            0  [w0            ]|w0            |
//                                                      16  [w1            ]|w1            |    a lane has 4 x 4 in
//   track 0    rows 0, 1 of the tile                   32   w0             |w0            |    each of the four
//   track 1    rows 2, 3                               48   w1             |w1            |    quarters of the tile
//   track 2    rows 4, 5
//   track 3    rows 6, 7       (as A lies in TRANS_A, and B without: a matrix stored the other way is turned)
//
// 64 results, 32 words of fragments, 16 on their way and the addresses need more than 128 registers: six blocks are
// resident on an SM, three warps for each of its four schedulers.
template <
    int BM, int BN, int BK, int SPLIT, int LANE_MAP, int COALESCE, int TEXTURE, bool TRANS_A, bool TRANS_B>
__global__ void __launch_bounds__(BM * BN / 64, 6) maxas_64(
    int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc,
    cudaTextureObject_t A_tex, cudaTextureObject_t B_tex)
{
    maxas<BM, BK, SPLIT != 0, LANE_MAP, COALESCE != 0, TRANS_A, TRANS_B>(
        M, N, K, alpha, A, lda, B, ldb, beta, C, ldc, TEXTURE ? A_tex : 0, TEXTURE ? B_tex : 0);
}
