/* gemmlab
summary = "a column of TM results a thread"
source = "written for a test in the manner of public worklogs"
kernel = "sgemm1DBlocktiling"
params = { BM = 64, BN = 64, BK = 8, TM = 8 }
tune = { BM = [32, 64], BN = [32, 64], TM = [4, 8] }
require = ["BM * BK == BM * BN // TM", "BN * BK == BM * BN // TM", "M % BM == 0", "N % BN == 0", "K % BK == 0"]
grid = "N // BN, M // BM"
threads = "BM * BN // TM"
*/
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdio>
#include <cuda_runtime.h>

template <const int BM, const int BN, const int BK, const int TM>
__global__ void sgemm1DBlocktiling(int M, int N, int K, float alpha,
                                   const float *A, const float *B, float beta,
                                   float *C) {
  const uint cRow = blockIdx.y;
  const uint cCol = blockIdx.x;
  const int threadCol = threadIdx.x % BN;
  const int threadRow = threadIdx.x / BN;

  __shared__ float As[BM * BK];
  __shared__ float Bs[BK * BN];

  A += cRow * BM * K;
  B += cCol * BN;
  C += cRow * BM * N + cCol * BN;

  const uint innerColA = threadIdx.x % BK;
  const uint innerRowA = threadIdx.x / BK;
  const uint innerColB = threadIdx.x % BN;
  const uint innerRowB = threadIdx.x / BN;

  float threadResults[TM] = {0.0};

  for (uint bkIdx = 0; alpha != 0 && bkIdx < K; bkIdx += BK) {
    As[innerRowA * BK + innerColA] = A[innerRowA * K + innerColA];
    Bs[innerRowB * BN + innerColB] = B[innerRowB * N + innerColB];
    __syncthreads();
    A += BK;
    B += BK * N;
    for (uint dotIdx = 0; dotIdx < BK; ++dotIdx) {
      float tmpB = Bs[dotIdx * BN + threadCol];
      for (uint resIdx = 0; resIdx < TM; ++resIdx)
        threadResults[resIdx] += As[(threadRow * TM + resIdx) * BK + dotIdx] * tmpB;
    }
    __syncthreads();
  }

  for (uint resIdx = 0; resIdx < TM; ++resIdx) {
    float *c = &C[(threadRow * TM + resIdx) * N + threadCol];
    *c = alpha * threadResults[resIdx] + (beta == 0 ? 0 : beta * *c);
  }
}
