// Bitonic sort of key-value pairs: whole tiles in shared memory, longer strides in global memory.
#define TILE 512

__device__ inline void compare(unsigned int& ka, unsigned int& va, unsigned int& kb, unsigned int& vb,
                               unsigned int up) {
    if ((ka > kb) == up) {
        unsigned int t = ka;
        ka = kb;
        kb = t;
        t = va;
        va = vb;
        vb = t;
    }
}

extern "C" __global__ void sort_tiles(unsigned int* keys, unsigned int* vals) {
    __shared__ unsigned int k[TILE], v[TILE];
    keys += blockIdx.x * TILE + threadIdx.x;
    vals += blockIdx.x * TILE + threadIdx.x;
    k[threadIdx.x] = keys[0];
    v[threadIdx.x] = vals[0];
    k[threadIdx.x + TILE / 2] = keys[TILE / 2];
    v[threadIdx.x + TILE / 2] = vals[TILE / 2];

    for (unsigned int size = 2; size <= TILE; size <<= 1) {
        unsigned int up = size == TILE ? (blockIdx.x & 1) == 0 : (threadIdx.x & (size / 2)) == 0;
        for (unsigned int stride = size / 2; stride > 0; stride >>= 1) {
            __syncthreads();
            unsigned int pos = 2 * threadIdx.x - (threadIdx.x & (stride - 1));
            compare(k[pos], v[pos], k[pos + stride], v[pos + stride], up);
        }
    }
    __syncthreads();
    keys[0] = k[threadIdx.x];
    vals[0] = v[threadIdx.x];
    keys[TILE / 2] = k[threadIdx.x + TILE / 2];
    vals[TILE / 2] = v[threadIdx.x + TILE / 2];
}

extern "C" __global__ void merge_step(unsigned int* keys, unsigned int* vals, unsigned int size, unsigned int stride) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned int pos = 2 * i - (i & (stride - 1));
    unsigned int up = (i & (size / 2)) == 0;
    compare(keys[pos], vals[pos], keys[pos + stride], vals[pos + stride], up);
}
