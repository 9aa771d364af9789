// A first SGEMM with its own little test program: nvcc -o sgemm sgemm_with_main.cu && ./sgemm
#ifndef __CUDACC_RTC__
#include <cuda_runtime.h>
#include <cstdio>
#include <vector>
#endif

#define CEIL_DIV(a, b) (((a) + (b) - 1) / (b))

__global__ void sgemm(int M, int N, int K, float alpha, float *A, float *B, float beta, float *C) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  const int col = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < M && col < N) {
    float tmp = 0.0f;
    if (alpha != 0.0f)
      for (int i = 0; i < K; ++i) tmp += A[(size_t)row * K + i] * B[(size_t)i * N + col];
    float result = alpha * tmp;
    if (beta != 0.0f) result += beta * C[(size_t)row * N + col];
    C[(size_t)row * N + col] = result;
  }
}

#ifndef __CUDACC_RTC__
int main() {
  const int n = 256;
  std::vector<float> host(n * n, 1.0f);
  float *a, *b, *c;
  cudaMalloc(&a, n * n * sizeof(float));
  cudaMalloc(&b, n * n * sizeof(float));
  cudaMalloc(&c, n * n * sizeof(float));
  cudaMemcpy(a, host.data(), n * n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(b, host.data(), n * n * sizeof(float), cudaMemcpyHostToDevice);
  dim3 block(16, 16), grid(CEIL_DIV(n, 16), CEIL_DIV(n, 16));
  sgemm<<<grid, block>>>(n, n, n, 1.0f, a, b, 0.0f, c);
  cudaMemcpy(host.data(), c, n * n * sizeof(float), cudaMemcpyDeviceToHost);
  printf("c[0] = %f, expected %d\n", host[0], n);
  return 0;
}
#endif
