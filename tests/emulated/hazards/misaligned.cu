// Wide accesses at addresses that are no multiple of their width.
extern "C" __global__ void global_bad(const float* in, float* out, int n) {
    float4 v = *(const float4*)(in + threadIdx.x * 4 + n);  // HERE
    out[threadIdx.x] = v.x + v.y + v.z + v.w;
}
extern "C" __global__ void global_good(const float* in, float* out, int n) {
    const float* from = in + threadIdx.x * 4 + n;
    out[threadIdx.x] = from[0] + from[1] + from[2] + from[3];
}

extern "C" __global__ void shared_bad(float* out, int n) {
    __shared__ __align__(16) float s[128];
    *(float2*)(s + threadIdx.x * 2 + n) = make_float2(1.0f, 2.0f);  // HERE
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x + n];
}
extern "C" __global__ void shared_good(float* out, int n) {
    __shared__ __align__(16) float s[128];
    *(float2*)(s + threadIdx.x * 2 + n * 2) = make_float2(1.0f, 2.0f);
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x + n * 2];
}
