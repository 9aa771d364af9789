// Barriers that not all threads reach, or not together.
extern "C" __global__ void half_warp_bad(const float* in, float* out) {
    __shared__ float s[64];
    s[threadIdx.x] = in[threadIdx.x];
    if (threadIdx.x < 48) {
        __syncthreads();  // HERE
        out[threadIdx.x] = s[(threadIdx.x + 32) % 48];
    } else {
        out[threadIdx.x] = 0.0f;
    }
}
extern "C" __global__ void half_warp_good(const float* in, float* out) {
    __shared__ float s[64];
    s[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = threadIdx.x < 48 ? s[(threadIdx.x + 32) % 48] : 0.0f;
}

extern "C" __global__ void early_return_bad(const float* in, float* out, int n) {
    __shared__ float s[128];
    if ((int)threadIdx.x >= n) return;
    s[threadIdx.x] = in[threadIdx.x];
    __syncthreads();  // HERE
    out[threadIdx.x] = s[n - 1 - threadIdx.x];
}
extern "C" __global__ void early_return_good(const float* in, float* out, int n) {
    __shared__ float s[128];
    if ((int)threadIdx.x < n) s[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    if ((int)threadIdx.x < n) out[threadIdx.x] = s[n - 1 - threadIdx.x];
}

// A barrier's number comes from data: there are 16 of them.
extern "C" __global__ void number_bad(float* out, int number) {
    asm volatile("bar.sync %0;" ::"r"(number + 1) : "memory");  // HERE
    out[threadIdx.x] = 1.0f;
}
extern "C" __global__ void number_good(float* out, int number) {
    asm volatile("bar.sync %0;" ::"r"(number) : "memory");
    out[threadIdx.x] = 1.0f;
}
