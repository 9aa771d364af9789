/* gemmlab
grid = "ceil_div(N, EDGE), ceil_div(M, EDGE)"
threads = "EDGE, EDGE"
params = { EDGE = 16 }
tune = { EDGE = [8, 16] }
always_reads = ["C"]
*/
#ifndef EDGE
#define EDGE 16
#endif
__global__ void adds_to_c(const float* A, const float* B, float* C, int M, int N, int K) {
    const int col = blockIdx.x * EDGE + threadIdx.x, row = blockIdx.y * EDGE + threadIdx.y;
    if (row >= M || col >= N) return;
    for (int k = 0; k < K; ++k) C[row * N + col] += A[row * K + k] * B[k * N + col];
}
