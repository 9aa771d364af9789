/* gemmlab
summary = "8 x 8 results a thread in quarters of 4 x 4, lanes in z-order"
idea = "Lanes in a row read neighbouring pieces of 16 bytes, so no bank is asked twice; z-order halves the passes."
source = "Chinese GPU GEMM worklog: its gemm_bank_free; Chinese SGEMM notes on maxas: the lane map, which they scan"
op = "gemm"
after = "warp_tile_double_buffer"
arch = "sm_80"
transposes = ["nn", "nt", "tn", "tt"]
grid = "ceil_div(M, BM) * ceil_div(N, BN)"
threads = "(BM // TM) * (BN // TN)"
smem_bytes = "8 * BK * (BM + BN + 8)"
require = [
    "min(BM, BN, BK, TM, TN) >= 4 and TM % 4 == 0 and TN % 4 == 0 and BK % 8 == 0 and 0 <= LANE_MAP <= 1",
    "BM % 32 == 0 and BM & BM - 1 == 0 and BN % 32 == 0 and BN & BN - 1 == 0",
    "BM % (TM * (4 if TM > TN else 8)) == 0 and BN % (TN * (8 if TM > TN else 4)) == 0",  # warps of 4 x 8 or 8 x 4
    "BM * BN <= 32768 and TM * TN <= 128",                                                # registers
    "min(BM, BN) % ((BM // TM) * (BN // TN) // 2) == 0",                                  # float4 a thread
    "8 * BK * (BM + BN + 8) <= 65536",
]
expect = [
    "shared_load_excess == 0 and shared_store_excess == 0",
    # Two wavefronts are the floor of an LDS.128: 16 lanes each. In a scan the loads of Bs take four, those of As two.
    "executed_LDS == executed_LDS_128 and shared_load_wavefronts == 2 * executed_LDS_128",
    { config = { LANE_MAP = 0 }, that = "shared_load_wavefronts == 3 * executed_LDS_128" },
    { config = { TM = 16 }, that = "shared_load_wavefronts == 2 * executed_LDS_128" },
    { shape = "128x128x136", that = "barriers == 8 * ceil_div(K, BK)" },
]

[params]
BM = 128
BN = 128
BK = 8
TM = 8
TN = 8
LANE_MAP = 1  # 1 z-order, 0 a scan: lanes row after row

[tune]
BM = [64, 128, 256]
BN = [64, 128, 256]
TM = [8, 16]
LANE_MAP = [0, 1]
*/

#include "staged_product.cuh"

//   the 128 x 128 tile and its 8 warps, 64 x 32 each        one warp: lane 0's four quarters, and lane 0 alone
//
//           BN                                                    0   4       16  20
//      +----+----+----+----+                                   0  [##]........[##]........
//      | w0 | w1 | w2 | w3 |                                   4  .           .
//   BM +----+----+----+----+                                   :  .           .
//      | w4 | w5 | w6 | w7 |                                  32  [##]........[##]........
//      +----+----+----+----+                                  36  .           .
//
// One LDS.128 brings a column piece of 4, two bring the 8 of a step k; the same of Bs. Lanes that share a row of
// quarters read the same words of As, lanes above each other the same words of Bs. Which lanes these are is the lane
// map, drawn in lane_map.cuh. As and Bs are k-major in two buffers, their rows padded by 4 words so that stores are
// free of conflicts too where a tile is turned (tile_stream.cuh); the flow of k-blocks is in staged_product.cuh.
template <int BM, int BN, int BK, int TM, int TN, int LANE_MAP, bool TRANS_A, bool TRANS_B>
__global__ void __launch_bounds__((BM / TM) * (BN / TN), resident_blocks(BM, BN, BK, (BM / TM) * (BN / TN)))
conflict_free(
    int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc)
{
    extern __shared__ __align__(16) float shared[];
    using Product = StagedProduct<BM, BN, BK, TM, TN, LANE_MAP, 2, false, false, TRANS_A, TRANS_B>;
    Product::store(shared, tile_of_block<BM, BN>(N), M, N, K, alpha, A, lda, B, ldb, beta, C, ldc);
}
