// 256-bin histogram of bytes: a histogram a block in shared memory, merged with global atomics.
typedef unsigned char uchar;

extern "C" __global__ void histogram256(const uchar4* data, unsigned int* bins, int n4) {
    __shared__ unsigned int local[256];
    for (int b = threadIdx.x; b < 256; b += blockDim.x) local[b] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n4; i += gridDim.x * blockDim.x) {
        uchar4 v = data[i];
        atomicAdd(&local[v.x], 1);
        atomicAdd(&local[v.y], 1);
        atomicAdd(&local[v.z], 1);
        atomicAdd(&local[v.w], 1);
    }
    __syncthreads();
    for (int b = threadIdx.x; b < 256; b += blockDim.x)
        if (local[b]) atomicAdd(&bins[b], local[b]);
}

// Straight into global memory, for floats with a range: the textbook version.
extern "C" __global__ void histogram_range(const float* x, int* bins, int n, int nbins, float lo, float hi) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = x[i];
    if (!(v >= lo && v < hi)) return;
    int b = (int)((v - lo) / (hi - lo) * nbins);
    atomicAdd(bins + min(b, nbins - 1), 1);
}
