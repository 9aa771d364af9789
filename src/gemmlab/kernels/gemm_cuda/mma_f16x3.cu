/* gemmlab
summary = "float32 operands as two halves each, scaled and split in registers, three products by mma.sync"
idea = "Two halves have a float32's accuracy once rows and columns are scaled, at half the tensor time of TF32 parts."
source = "Ootomo and Yokota, Recovering single precision accuracy from Tensor Cores (2022); scales by row are ours"
op = "gemm"
after = "mma_bf16x6"
arch = "sm_80"
precision = "f16x3"
transposes = ["nn", "nt", "tn", "tt"]
phases = "2"
args = "M, N, K, alpha, A, lda, B, ldb, beta, C, ldc, workspace, phase"
grid = "ceil_div(M, 32) + ceil_div(N, 32) if phase == 0 else ceil_div(M, BM) * ceil_div(N, BN)"
threads = "32 * (BM // WM) * (BN // WN)"
smem_bytes = "640 if phase == 0 else 4 * STAGES * BK * (BM + BN)"
workspace = "8 * (M + N)"
require = [
    "BM % WM == 0 and BN % WN == 0 and WM % 32 == 0 and WN % 32 == 0 and WM * WN <= 2048",
    "(BM // WM) * (BN // WN) == 8 and BM * BN % 2048 == 0",  # 256 threads
    "(BK == 16 or BK == 32) and 2048 % max(BM, BN) == 0",
    "2 <= STAGES <= 5 and GROUP >= 1",
    "4 * STAGES * BK * (BM + BN) <= 166912",
]
expect = [
    { shape = "128x128x64", that = "executed_HMMA_16816_F32 * 16 * 8 * 16 == 2 * M * N * K" },
    { shape = "128x128x64", that = "executed_HMMA_1688_F32 * 16 * 8 * 8 == M * N * K" },
    # The first launch has a few for 32 lines.
    { shape = "128x128x64", that = "shared_load_requests <= (WM + WN) * (K + 16) // 16 + 4 * M" },
    { shape = "128x128x64", that = "shared_load_excess == 0 and async_copy_excess == 0" },
    # FMA lanes join the small products to the large ones; no tile is computed exactly.
    { shape = "128x128x64", that = "executed_FFMA * 32 == M * N * K // 16 and local_store_requests == 0" },
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

#include "line_scales.cuh"
#include "mma_tf32x3.cu"

// Element by element a = a1 + a2 / 2^11 and b = b1 + b2 / 2^11, in halves, so
//
//     a b  =  a1 b1  +  (a1 b2 + a2 b1) / 2^11  +  a2 b2 / 2^22, which is left out: at most 2^-22 of the first
//
// Halves have five bits of exponent, so the first launch finds a scale for each row of A and each column of B. The
// second is the loop of mma_bf16x6: what a warp reads is scaled, then split. Small products have a sum of their own.

struct HighAndLow {
    template <class Parts, class Words>
    static __device__ __forceinline__ void add(float (&sums)[4], const Words (&a)[2], const Words (&b)[2], int half)
    {
        float low[4] = {}, first[4] = {}, second[4] = {};
        Parts::multiply(low, a[0], b[1], half);
        Parts::multiply(low, a[1], b[0], half);
        Parts::template multiply_strip<0>(first, a[0], b[0], half);
        Parts::template multiply_strip<1>(second, a[0], b[0], half);
#pragma unroll
        for (int element = 0; element < 4; ++element)
            sums[element] += fmaf(low[element], 1.0f / 2048, first[element]) + second[element];
    }
};

template <int BM, int BN, int BK, int WM, int WN, int STAGES, int GROUP, bool TRANS_A, bool TRANS_B>
__global__ void __launch_bounds__(EXACT_THREADS) mma_f16x3(
    int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc,
    void* workspace, int phase)
{
    extern __shared__ __align__(128) float stages[];  // STAGES times a tile of A and one of B
    const ScaledLines lines{static_cast<Line*>(workspace), M, N};
    if (phase == 0)
        lines.look<TRANS_A, TRANS_B>(A, lda, B, ldb, sum_depth(K, alpha), *reinterpret_cast<LineFacts*>(stages));
    else
        multiply_by_parts<TwoHalvesInRegisters, HighAndLow, BM, BN, BK, WM, WN, STAGES, GROUP, TRANS_A, TRANS_B>(
            stages, M, N, K, alpha, A, lda, B, ldb, beta, C, ldc, lines);
}
