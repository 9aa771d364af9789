/* gemmlab
summary = "float32 operands as three bfloat16 each, split in registers, six products by mma.sync"
idea = "Three bfloat16 have all bits of a float32, and six of their products cost what three of TF32 do."
source = "Henry, Tang and Heinecke, Leveraging the bfloat16 Datatype For Higher-Precision Computations (2019)"
op = "gemm"
after = "mma_tf32x3"
arch = "sm_80"
precision = "bf16x6"
transposes = ["nn", "nt", "tn", "tt"]
grid = "ceil_div(M, BM) * ceil_div(N, BN)"
threads = "32 * (BM // WM) * (BN // WN)"
smem_bytes = "4 * STAGES * BK * (BM + BN)"
require = [
    "BM % WM == 0 and BN % WN == 0 and WM % 32 == 0 and WN % 32 == 0 and WM * WN <= 2048",
    "(BM // WM) * (BN // WN) == 8 and BM * BN % 2048 == 0",  # 256 threads
    "(BK == 16 or BK == 32) and 2048 % max(BM, BN) == 0",
    "2 <= STAGES <= 5 and GROUP >= 1",
    "4 * STAGES * BK * (BM + BN) <= 166912",
]
expect = [
    { shape = "128x128x64", that = "executed_HMMA_16816_F32_BF16 * 16 * 8 * 16 == 6 * M * N * K" },
    { shape = "128x128x64", that = "128 * shared_load_requests == (WM + WN) * (K + 16) * M * N // (WM * WN)" },
    { shape = "128x128x64", that = "shared_load_excess == 0 and async_copy_excess == 0" },
    # FMA lanes only split and add; no tile is computed exactly.
    { shape = "128x128x64", that = "executed_FFMA == 0 and local_store_requests == 0" },
]

[params]
BM = 128
BN = 128
BK = 32
WM = 32  # of a warp
WN = 64
STAGES = 3
GROUP = 8  # tiles across a strip of the order in which blocks walk C

[tune]
BM = [64, 128]
BN = [64, 128, 256]
BK = [16, 32]
WN = [32, 64]
STAGES = [2, 3, 4]
*/

#include "mma_tf32x3.cu"

// Element by element a = a1 + a2 + a3 and b = b1 + b2 + b3, in bfloat16, so
//
//     a b  =  a1 b1  +  a1 b2 + a2 b1  +  a1 b3 + a2 b2 + a3 b1  +  three more, which are left out: they are at most
//                                                                   2^-22 of the first
//
// The loop is that of mma_tf32x3. A product takes 16 of k, and a lane's pairs along k are the words that it has of two
// steps of 8.

struct SixProducts : OneSum<SixProducts> {
    static constexpr int COUNT = 6;
    static __device__ constexpr int a_part(int product) { return product < 3 ? 2 - product : product == 3; }
    static __device__ constexpr int b_part(int product) { return product < 3 ? product : product == 4; }
};

template <int BM, int BN, int BK, int WM, int WN, int STAGES, int GROUP, bool TRANS_A, bool TRANS_B>
__global__ void __launch_bounds__(EXACT_THREADS) mma_bf16x6(
    int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc)
{
    extern __shared__ __align__(128) float stages[];  // STAGES times a tile of A and one of B
    multiply_by_parts<ThreeBfloatsInRegisters, SixProducts, BM, BN, BK, WM, WN, STAGES, GROUP, TRANS_A, TRANS_B>(
        stages, M, N, K, alpha, A, lda, B, ldb, beta, C, ldc);
}
