// Two warps meet in shared memory with no barrier between.
__device__ __forceinline__ void clear(float* s) {
    s[threadIdx.x] = 0.0f;
    __syncthreads();
}

extern "C" __global__ void read_after_write_bad(const float* in, float* out) {
    __shared__ float s[64];
    clear(s);
    s[threadIdx.x] = in[threadIdx.x];       // OTHER
    out[threadIdx.x] = s[63 - threadIdx.x];  // HERE: another warp's
}
extern "C" __global__ void read_after_write_good(const float* in, float* out) {
    __shared__ float s[64];
    clear(s);
    s[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = s[63 - threadIdx.x];
}

// The second barrier of a tiled loop is missing: a fast warp overwrites what a slow one still reads.
extern "C" __global__ void write_after_read_bad(const float* in, float* out, int n) {
    __shared__ float s[64];
    float sum = 0.0f;
#pragma unroll 1
    for (int k = 0; k < n; k++) {
        s[threadIdx.x] = in[k * 64 + threadIdx.x];  // OTHER
        __syncthreads();
        sum += s[63 - threadIdx.x];  // HERE
    }
    out[threadIdx.x] = sum;
}
extern "C" __global__ void write_after_read_good(const float* in, float* out, int n) {
    __shared__ float s[64];
    float sum = 0.0f;
#pragma unroll 1
    for (int k = 0; k < n; k++) {
        s[threadIdx.x] = in[k * 64 + threadIdx.x];
        __syncthreads();
        sum += s[63 - threadIdx.x];
        __syncthreads();
    }
    out[threadIdx.x] = sum;
}

extern "C" __global__ void write_after_write_bad(float* out) {
    __shared__ float s[32];
    const int lane = threadIdx.x % 32;
    if (threadIdx.x < 32) s[lane] = 1.0f;  // OTHER
    asm volatile("" ::: "memory");          // or the compiler makes one store of the two
    if (threadIdx.x >= 32) s[lane] = 2.0f;  // HERE
    __syncthreads();
    out[threadIdx.x] = s[lane];
}
extern "C" __global__ void write_after_write_good(float* out) {
    __shared__ float s[32];
    const int lane = threadIdx.x % 32;
    if (threadIdx.x < 32) s[lane] = 1.0f;
    __syncthreads();
    if (threadIdx.x >= 32) s[lane] = 2.0f;
    __syncthreads();
    out[threadIdx.x] = s[lane];
}

// A plain increment by many warps, and an atomic one.
extern "C" __global__ void counter_bad(int* out) {
    __shared__ volatile int count;
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        int seen = count;
        count = seen + 1;  // HERE
    }
    __syncthreads();
    out[threadIdx.x] = count;
}
extern "C" __global__ void counter_good(int* out) {
    __shared__ int count;
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    if (threadIdx.x % 32 == 0) atomicAdd(&count, 1);
    __syncthreads();
    out[threadIdx.x] = count;
}

// All threads of two warps write one place: no race if it is one value.
extern "C" __global__ void one_value_bad(const double* in, double* out) {
    __shared__ double value;
    value = in[threadIdx.x / 32];  // HERE OTHER
    __syncthreads();
    out[threadIdx.x] = value;
}
extern "C" __global__ void one_value_good(const double* in, double* out) {
    __shared__ double value;
    value = in[0];
    __syncthreads();
    out[threadIdx.x] = value;
}
// A warp sets what another one resets, and the value of its first lanes is there already.
extern "C" __global__ void one_flag_bad(const double* in, double* out) {
    __shared__ volatile bool flag;
    flag = in[threadIdx.x] > 33;  // HERE OTHER
    __syncthreads();
    out[threadIdx.x] = flag;
}
extern "C" __global__ void one_flag_good(const double* in, double* out) {
    __shared__ volatile bool flag;
    flag = false;
    if (in[threadIdx.x] > 64) flag = true;
    __syncthreads();
    out[threadIdx.x] = flag;
}
