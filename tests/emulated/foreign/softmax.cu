// Row-wise softmax: a block a row, running maximum and sum, warp shuffles and one shared step between warps.
#include "reductions.cuh"

extern "C" __global__ void softmax_rows(const float* in, float* out, int rows, int cols) {
    __shared__ float scratch[32];
    const int row = blockIdx.x;
    if (row >= rows) return;
    const float* x = in + (size_t)row * cols;
    float* y = out + (size_t)row * cols;

    float top = -INFINITY;
    for (int c = threadIdx.x; c < cols; c += blockDim.x) top = fmaxf(top, x[c]);
    top = block_reduce(top, scratch, Max());

    float sum = 0.0f;
    for (int c = threadIdx.x; c < cols; c += blockDim.x) {
        float e = __expf(x[c] - top);
        y[c] = e;
        sum += e;
    }
    sum = block_reduce(sum, scratch, Sum());

    const float scale = 1.0f / sum;
    for (int c = threadIdx.x; c < cols; c += blockDim.x) y[c] *= scale;
}
