// A step of k-means: nearest centre of each point, then sums and counts of each cluster.
#define DIM 3

extern "C" __global__ void assign(const float* points, const float* centres, int* label, int n, int k) {
    extern __shared__ float shared_centres[];
    for (int c = threadIdx.x; c < k * DIM; c += blockDim.x) shared_centres[c] = centres[c];
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float best = 3.4e38f;
    int which = -1;
    for (int c = 0; c < k; c++) {
        float d = 0;
        for (int x = 0; x < DIM; x++) {
            float diff = points[i * DIM + x] - shared_centres[c * DIM + x];
            d += diff * diff;
        }
        if (d < best) {
            best = d;
            which = c;
        }
    }
    label[i] = which;
}

extern "C" __global__ void accumulate(const float* points, const int* label, double* sums, int* counts, int n, int k) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int c = label[i];
    for (int x = 0; x < DIM; x++) atomicAdd(&sums[c * DIM + x], (double)points[i * DIM + x]);
    atomicAdd(&counts[c], 1);
}
