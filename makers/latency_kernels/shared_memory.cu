// Shared memory: sums, histograms, transposition: code of other forms than the catalog has, for makers/sass_latencies.py.

extern "C" __global__ void block_sum(const float *x, float *y, int n) {
    __shared__ float s[32];
    float v = 0;
    for (int i = threadIdx.x; i<n; i += blockDim.x) v += x[i];
    for (int d = 16; d; d /= 2) v += __shfl_xor_sync(~0u, v, d);
    if (!(threadIdx.x&31)) s[threadIdx.x/32] = v;
    __syncthreads();
    if (threadIdx.x<32) {
        v = threadIdx.x<blockDim.x/32 ? s[threadIdx.x]:0;
        for (int d = 16; d; d /= 2) v += __shfl_xor_sync(~0u, v, d);
        if (!threadIdx.x) atomicAdd(y, v);
    }
}

extern "C" __global__ void histogram(const unsigned char *x, int n, unsigned *h) {
    __shared__ unsigned s[256];
    for (int i = threadIdx.x; i<256; i += blockDim.x) s[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x*blockDim.x+threadIdx.x; i<n; i += gridDim.x*blockDim.x) atomicAdd(&s[x[i]], 1);
    __syncthreads();
    for (int i = threadIdx.x; i<256; i += blockDim.x) atomicAdd(&h[i], s[i]);
}

template<int T>__device__ void tr(const float *x, float *y, int n) {
    __shared__ float s[T][T+1];
    int i = blockIdx.x*T+threadIdx.x, j = blockIdx.y*T;
    for (int k = threadIdx.y; k<T; k += 8) if (i<n && j+k<n) s[k][threadIdx.x] = x[(j+k)*n+i];
    __syncthreads();
    i = blockIdx.y*T+threadIdx.x;
    j = blockIdx.x*T;
    for (int k = threadIdx.y; k<T; k += 8) if (i<n && j+k<n) y[(j+k)*n+i] = s[threadIdx.x][k];
}
extern "C" __global__ void transpose(const float *x, float *y, int n) {
    tr<32>(x, y, n);
}

extern "C" __global__ void volatile_shared(float *p, int n) {
    extern __shared__ float s[];
    volatile float*v = s;
    v[threadIdx.x] = p[threadIdx.x];
    __syncthreads();
    for (int d = blockDim.x/2; d>32; d /= 2) {
        if (threadIdx.x<d) v[threadIdx.x] += v[threadIdx.x+d];
        __syncthreads();
    }
    if (threadIdx.x<32) {
        v[threadIdx.x] += v[threadIdx.x+32];
        v[threadIdx.x] += v[threadIdx.x+16];
        v[threadIdx.x] += v[threadIdx.x+8];
    }
    p[threadIdx.x] = v[0];
    short*h = (short*) s;
    h[threadIdx.x] += 3;
    char*c = (char*) s;
    c[threadIdx.x] ^= 5;
    double*d = (double*) s;
    d[threadIdx.x] *= 2;
}

extern "C" __global__ void persist_queue(int *q, float *p, int n) {
    __shared__ int w;
    for (; ; ) {
        if (!threadIdx.x) w = atomicAdd(q, 1);
        __syncthreads();
        int k = w;
        if (k >= n) return;
        for (int i = threadIdx.x; i<100; i += blockDim.x) p[k*100+i] = sqrtf(p[k*100+i]);
        __syncthreads();
    }
}
