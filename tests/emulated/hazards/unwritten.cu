// Values that nothing has written.
extern "C" __global__ void shared_bad(float* out, int n) {
    __shared__ float s[64];
    if ((int)threadIdx.x < n) s[threadIdx.x] = 1.0f;
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x];  // HERE
}
extern "C" __global__ void shared_good(float* out, int n) {
    __shared__ float s[64];
    s[threadIdx.x] = (int)threadIdx.x < n ? 1.0f : 0.0f;
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x];
}

extern "C" __global__ void global_bad(const float* in, float* out, int n) {
    if ((int)threadIdx.x < n) out[threadIdx.x] = in[threadIdx.x] * 2.0f;  // HERE
}
extern "C" __global__ void global_good(float* in, float* out, int n) {
    if ((int)threadIdx.x < n) {
        in[threadIdx.x] = 3.0f;
        out[threadIdx.x] = in[threadIdx.x] * 2.0f;
    }
}
