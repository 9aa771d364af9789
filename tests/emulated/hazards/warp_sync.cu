// Warp-level functions whose mask names lanes that never come.
extern "C" __global__ void some_lanes_bad(const float* in, float* out, int n) {
    float sum = in[threadIdx.x];
    if (threadIdx.x < n) sum += __shfl_down_sync(0xffffffff, sum, 16);  // HERE
    out[threadIdx.x] = sum;
}
extern "C" __global__ void some_lanes_good(const float* in, float* out, int n) {
    float sum = in[threadIdx.x];
    const float other = __shfl_down_sync(0xffffffff, sum, 16);
    if (threadIdx.x < n) sum += other;
    out[threadIdx.x] = sum;
}

extern "C" __global__ void ballot_bad(const float* in, unsigned* out, int n) {
    unsigned found = 0;
    if (threadIdx.x < n) found = __ballot_sync(0xffffffff, in[threadIdx.x] > 0.5f);  // HERE
    out[threadIdx.x] = found;
}
extern "C" __global__ void ballot_good(const float* in, unsigned* out, int n) {
    const unsigned mask = __ballot_sync(0xffffffff, threadIdx.x < n);
    unsigned found = 0;
    if (threadIdx.x < n) found = __ballot_sync(mask, in[threadIdx.x] > 0.5f);
    out[threadIdx.x] = found;
}

// Lanes that have returned name no mistake, but there is nothing to be read from them.
extern "C" __global__ void returned_bad(const float* in, float* out, int n) {
    if (threadIdx.x >= n) return;
    float sum = in[threadIdx.x];
    sum += __shfl_down_sync(0xffffffff, sum, 4);  // HERE
    out[threadIdx.x] = sum;
}
extern "C" __global__ void returned_good(const float* in, float* out, int n) {
    if (threadIdx.x >= n) return;
    float sum = in[threadIdx.x];
    sum += __shfl_up_sync(0xffffffff, sum, 4);
    __syncwarp();
    out[threadIdx.x] = sum;
}

// A mask that does not name who takes part.
extern "C" __global__ void mask_bad(const float* in, float* out, unsigned mask) {
    float sum = in[threadIdx.x];
    if (threadIdx.x % 2 == 0) sum += __shfl_xor_sync(mask & ~1u, sum, 2);  // HERE
    out[threadIdx.x] = sum;
}
extern "C" __global__ void mask_good(const float* in, float* out, unsigned mask) {
    float sum = in[threadIdx.x];
    if (threadIdx.x % 2 == 0) sum += __shfl_xor_sync(mask, sum, 2);
    out[threadIdx.x] = sum;
}
