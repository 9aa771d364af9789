#pragma once

template <int EDGE>
__global__ void tiled(int M, int N, int K, const float* A, const float* B, float* C) {
  const int row = blockIdx.y * EDGE + threadIdx.y, column = blockIdx.x * EDGE + threadIdx.x;
  if (row >= M || column >= N) return;
  float sum = 0.0f;
  for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + column];
  C[row * N + column] = sum;
}

__global__ void scaled(float* C, float by) { C[threadIdx.x] *= by; }
