/* gemmlab
summary = "cp.async through several stages of shared memory, 16 x 8 results a thread"
idea = "Tiles on their way hold no registers, so several are under way and a thread can own twice as many results."
source = "Chinese GPU GEMM worklog: its gemm_cp_sync; turning A by copies of 4 bytes is known from public SGEMM kernels"
op = "gemm"
after = "conflict_free"
arch = "sm_80"
transposes = ["nn", "nt", "tn", "tt"]
grid = "ceil_div(M, BM) * ceil_div(N, BN)"
threads = "(BM // TM) * (BN // TN)"
smem_bytes = "4 * STAGES * BK * (BM + BN + 8)"
require = [
    "min(BM, BN, BK, TM, TN) >= 4 and TM % 4 == 0 and TN % 4 == 0 and BK % 8 == 0 and 0 <= LANE_MAP <= 1",
    "BM % 32 == 0 and BM & BM - 1 == 0 and BN % 32 == 0 and BN & BN - 1 == 0",
    "BM % (TM * (4 if TM > TN else 8)) == 0 and BN % (TN * (8 if TM > TN else 4)) == 0",  # warps of 4 x 8 or 8 x 4
    "BM * BN <= 32768 and TM * TN <= 128",                                                # registers
    "min(BM, BN) % ((BM // TM) * (BN // TN) // 2) == 0",                                  # float4 a thread
    "2 <= STAGES <= 4 and 0 <= TURN_ASYNC <= 1 and 4 * STAGES * BK * (BM + BN + 8) <= 101376",
]
expect = [
    # Nothing of A or B passes through a register on its way in: B comes 16 bytes a lane, A turned by 4.
    { shape = "128x256x64", that = "global_load_requests == 0 and shared_store_requests == 0" },
    { shape = "128x256x64", that = "128 * async_copy_requests == 4 * M * K + K * N" },
    # 32 bytes of each row of A and whole rows of B: no sector is asked for in vain, and no bank twice.
    { shape = "128x256x64", that = "8 * async_copy_sectors == M * K + K * N and async_copy_excess == 0" },
    { shape = "128x256x64", that = "shared_load_excess == 0 and shared_load_wavefronts == 2 * shared_load_requests" },
    { shape = "128x256x64", config = { STAGES = 2 }, that = "async_copy_excess == 0 and barriers == 8 * K // BK" },
    { shape = "128x256x64", config = { STAGES = 4 }, that = "async_copy_excess == 0 and barriers == 8 * K // BK" },
    # Turned through registers: float4 from global memory, four words to shared, no bank twice either.
    { shape = "128x256x64", config = { TURN_ASYNC = 0 }, that = "128 * async_copy_requests == K * N" },
    { shape = "128x256x64", config = { TURN_ASYNC = 0 }, that = "128 * global_load_requests == M * K" },
    { shape = "128x256x64", config = { TURN_ASYNC = 0 }, that = "0 == shared_store_excess < shared_store_requests" },
]

[params]
BM = 128
BN = 256
BK = 8
TM = 16
TN = 8
STAGES = 3
TURN_ASYNC = 1  # what must be turned comes 1 by cp.async of single floats, 0 through registers as float4
LANE_MAP = 1    # 1 z-order, 0 a scan

[tune]
BM = [128, 256]
BN = [128, 256]
TM = [8, 16]
STAGES = [2, 3, 4]
TURN_ASYNC = [0, 1]
*/

#include "staged_product.cuh"

//   through registers               cp.async
//
//   global --LDG--> register        global --LDGSTS--> shared       the load returns when it is issued; a thread waits
//                     | STS                                         for its group of copies just before the barrier
//                     v                                             that shows them to the others
//                   shared
//
// cp.async copies 4, 8 or 16 bytes as they are. What lies k-major in global memory (B, and A where it is stored
// transposed) comes 16 bytes at a time. The other operand must be turned, and there are two ways:
//
//   TURN_ASYNC = 1: single floats, each to its own place. Four times the instructions, no registers
//   TURN_ASYNC = 0: float4 through registers, four STS: cp.async for one operand alone, as in the source
//
// Both write rows that are 4 words longer than the tile, and so meet no bank twice (tile_stream.cuh). Operands that
// are not aligned to 16 bytes take single floats on both sides. How blocks of k pass through the STAGES buffers is
// drawn in staged_product.cuh.
template <
    int BM, int BN, int BK, int TM, int TN, int STAGES, int TURN_ASYNC, int LANE_MAP, bool TRANS_A, bool TRANS_B>
__global__ void __launch_bounds__((BM / TM) * (BN / TN), resident_blocks(BM, BN, BK, (BM / TM) * (BN / TN))) async_copy(
    int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc)
{
    extern __shared__ __align__(16) float shared[];
    using Product = StagedProduct<BM, BN, BK, TM, TN, LANE_MAP, STAGES, TURN_ASYNC != 0, true, TRANS_A, TRANS_B>;
    Product::store(shared, tile_of_block<BM, BN>(N), M, N, K, alpha, A, lda, B, ldb, beta, C, ldc);
}
