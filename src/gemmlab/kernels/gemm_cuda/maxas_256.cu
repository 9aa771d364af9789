/* gemmlab
summary = "the Maxwell design, 256 threads for 128 x 128: four warps load A and four B, through textures"
idea = "Tiles of 128 halve what each result reads; a thread follows one matrix with two tracks of 32 bits."
source = "Chinese notes on SGEMM, the Maxwell assembler's walk-through: its 256-thread implementation"
op = "gemm"
after = "conflict_free"
branch = true
arch = "sm_75"
transposes = ["tn", "nn", "nt", "tt"]
grid = "ceil_div(M, BM) * ceil_div(N, BN)"
threads = "BM * BN // 64"
require = [
    "BM == 128 and BN == 128 and BK == 8",
    "0 <= SPLIT <= 1 and 0 <= LANE_MAP <= 1 and 0 <= COALESCE <= 1 and 0 <= TEXTURE <= 1",
]
expect = [
    # 32 lanes fetch four floats each; nothing else reads A and B.
    "128 * texture_load_requests == M * N * K // BM + M * N * K // BN and global_load_requests == 0",
    { config = { TEXTURE = 0 }, that = "128 * global_load_requests == M * N * K // BM + M * N * K // BN" },
    { config = { TEXTURE = 0 }, that = "executed_TLD == 0 and global_load_requests <= executed_LDG_128" },
    { shape = "128x256x72", config = { SPLIT = 0 }, that = "128 * texture_load_requests == M * N * K // 64" },
    "shared_load_excess == 0 and shared_store_excess == 0",
    { config = { COALESCE = 0 }, that = "shared_load_wavefronts == 2 * executed_LDS_128" },
    { config = { COALESCE = 0, LANE_MAP = 0 }, that = "shared_load_wavefronts == 3 * executed_LDS_128" },
    # Warps store 32 neighbours, or 8 times 4 in each of four rows.
    "global_store_sectors_per_request == 4 and 32 * global_store_requests == M * N",
    { config = { COALESCE = 0 }, that = "global_store_sectors_per_request == 16 and executed_STG_128 == M * N // 128" },
    # A warp has 32 * 64 results.
    { shape = "128x256x72", that = "2048 * barriers == M * N * ceil_div(K, BK)" },
]

[params]
BM = 128
BN = 128
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

//   who loads                                      who computes: eight warps, 16 x 32 first quarters each
//
//     warps 0-3   A, 8 x 128: two float4 a lane             0       32      64              127
//     warps 4-7   B, 8 x 128: two float4 a lane         0  [w0    ][w1    ]|w0     |w1     |
//                                                      16  [w2    ][w3    ]|w2     |w3     |    a lane has 4 x 4 in
//   track 0       rows 0 .. 3 of the tile              32  [w4    ][w5    ]|w4     |w5     |    each of the four
//   track 1       rows 4 .. 7                          48  [w6    ][w7    ]|w6     |w7     |    quarters of the tile
//                                                      64   w0      w1     |w0     |w1     |
//                                                       :
// Two tracks and 8 words on their way instead of four and 16: this fits 128 registers, so that two blocks, 16 warps,
// are resident on an SM. A block reads half as much for each result as one of 64 x 64 does.
template <
    int BM, int BN, int BK, int SPLIT, int LANE_MAP, int COALESCE, int TEXTURE, bool TRANS_A, bool TRANS_B>
__global__ void __launch_bounds__(BM * BN / 64, 2) maxas_256(
    int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc,
    cudaTextureObject_t A_tex, cudaTextureObject_t B_tex)
{
    maxas<BM, BK, SPLIT != 0, LANE_MAP, COALESCE != 0, TRANS_A, TRANS_B>(
        M, N, K, alpha, A, lda, B, ldb, beta, C, ldc, TEXTURE ? A_tex : 0, TEXTURE ? B_tex : 0);
}
