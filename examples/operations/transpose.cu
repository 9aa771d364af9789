/* gemmlab
summary = "a block turns a tile of 32 x 32 in shared memory, whose rows have a 33rd column so that columns lie in 32 banks"
grid = "ceil_div(N, 32), ceil_div(M, 32)"
threads = "32, 8"
*/
__global__ void transpose(const float* x, float* y, int m, int n) {
    __shared__ float tile[32][33];
    int row = blockIdx.y * 32 + threadIdx.y, col = blockIdx.x * 32 + threadIdx.x;
    for (int k = 0; k < 32; k += 8)
        if (row + k < m && col < n) tile[threadIdx.y + k][threadIdx.x] = x[(size_t)(row + k) * n + col];
    __syncthreads();
    // The tile's place in y: its rows are columns of x.
    row = blockIdx.x * 32 + threadIdx.y, col = blockIdx.y * 32 + threadIdx.x;
    for (int k = 0; k < 32; k += 8)
        if (row + k < n && col < m) y[(size_t)(row + k) * m + col] = tile[threadIdx.x][threadIdx.y + k];
}
