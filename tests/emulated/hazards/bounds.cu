// Reads and writes outside of what was allocated. Each kernel has a twin that stays inside.
extern "C" __global__ void global_read_bad(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n) {
        float v = in[i];  // HERE: one too many
        out[min(i, n - 1)] = v;
    }
}
extern "C" __global__ void global_read_good(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i];
}

extern "C" __global__ void global_write_bad(float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i - 1] = 1.0f;  // HERE: before the first
}
extern "C" __global__ void global_write_good(float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= 1 && i <= n) out[i - 1] = 1.0f;
}

extern "C" __global__ void vector_read_bad(const float* in, float* out, int n) {
    int i = threadIdx.x * 4;
    if (i < n) {
        float4 v = *(const float4*)(in + i);  // HERE: the last four are not all there
        out[threadIdx.x] = v.x + v.y + v.z + v.w;
    }
}
extern "C" __global__ void vector_read_good(const float* in, float* out, int n) {
    int i = threadIdx.x * 4;
    if (i + 3 < n) {
        float4 v = *(const float4*)(in + i);
        out[threadIdx.x] = v.x + v.y + v.z + v.w;
    }
}

extern "C" __global__ void shared_write_bad(float* out, int n) {
    __shared__ float s[64];
    s[threadIdx.x + (n > 0 ? 1 : 0)] = 2.0f;  // HERE: the last thread
    __syncthreads();
    if (threadIdx.x > 0) out[threadIdx.x] = s[threadIdx.x];
}
extern "C" __global__ void shared_write_good(float* out, int n) {
    __shared__ float s[65];
    s[threadIdx.x + (n > 0 ? 1 : 0)] = 2.0f;
    __syncthreads();
    if (threadIdx.x > 0) out[threadIdx.x] = s[threadIdx.x];
}

extern "C" __global__ void shared_read_bad(float* out, int n) {
    extern __shared__ float s[];
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x + n];  // HERE: beyond what the launch gave
}
extern "C" __global__ void shared_read_good(float* out, int n) {
    extern __shared__ float s[];
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = s[(threadIdx.x + n) % blockDim.x];
}
