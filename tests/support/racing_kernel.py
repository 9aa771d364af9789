"""A kernel with tiles in shared memory, whose barriers tests take away or put under conditions."""

from __future__ import annotations

RACE = """/* gemmlab
grid = "ceil_div(N, 32) * ceil_div(M, 8)"
threads = "32, 8"
*/
__global__ void race(int M, int N, int K, float alpha, const float* A, const float* B, float* C)
{
    __shared__ float As[8][32];
    __shared__ float Bs[32][32];
    const int tiles = (N + 31) / 32, x = threadIdx.x, y = threadIdx.y;
    const long long row = blockIdx.x / tiles * 8 + y, col = blockIdx.x % tiles * 32 + x;
    float sum = 0.0f;
    for (int from = 0; from < K; from += 32) {
        As[y][x] = row < M && from + x < K ? A[row * K + from + x] : 0.0f;
        for (int k = y; k < 32; k += 8)
            Bs[k][x] = from + k < K && col < N ? B[static_cast<long long>(from + k) * N + col] : 0.0f;
        __syncthreads();  // FIRST
        for (int k = 0; k < 32; ++k) sum += As[y][k] * Bs[k][x];
        __syncthreads();  // SECOND
    }
    if (row < M && col < N) C[row * N + col] = alpha != 0.0f && K ? alpha * sum : 0.0f;
}
"""
