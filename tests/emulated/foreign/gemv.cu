// y = A x, a warp a row; the rows' tail is handled element by element.
template <int WARPS>
__global__ void __launch_bounds__(WARPS * 32) gemv(const float* A, const float* x, float* y, int m, int n, int lda) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int row = blockIdx.x * WARPS + warp; row < m; row += gridDim.x * WARPS) {
        const float* a = A + (long long)row * lda;
        float acc0 = 0, acc1 = 0;
        int j = lane;
        for (; j + 32 < n; j += 64) {
            acc0 += a[j] * x[j];
            acc1 += a[j + 32] * x[j + 32];
        }
        if (j < n) acc0 += a[j] * x[j];
        float sum = acc0 + acc1;
        for (int d = 16; d; d >>= 1) sum += __shfl_down_sync(~0u, sum, d);
        if (lane == 0) y[row] = sum;
    }
}
