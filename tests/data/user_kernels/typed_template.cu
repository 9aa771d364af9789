#include <cstdint>

template <typename T, int TILE = 16>
__global__ void matmul(const T* A, const T* B, T* C, int64_t M, int64_t N, int64_t K)
{
    int64_t row = (int64_t)blockIdx.y * TILE + threadIdx.y, col = (int64_t)blockIdx.x * TILE + threadIdx.x;
    if (row >= M || col >= N) return;
    T sum = T(0);
    for (int64_t k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
    C[row * N + col] = sum;
}
