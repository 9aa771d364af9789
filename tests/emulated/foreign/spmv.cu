// Sparse matrix times vector, CSR: part of a warp a row.
template <typename T, int LANES>
__global__ void spmv_csr(int rows, const int* __restrict__ start, const int* __restrict__ column,
                         const T* __restrict__ value, const T* __restrict__ x, T* __restrict__ y) {
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / LANES;
    const int lane = threadIdx.x % LANES;
    T sum = 0;
    if (row < rows)
        for (int j = start[row] + lane; j < start[row + 1]; j += LANES) sum += value[j] * x[column[j]];
    for (int d = LANES / 2; d > 0; d /= 2) sum += __shfl_down_sync(0xffffffff, sum, d, LANES);
    if (row < rows && lane == 0) y[row] = sum;
}
