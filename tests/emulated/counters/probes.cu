// One memory instruction each, at addresses that a table gives: lane i of the warp goes to word `where[i]`.
// Shared memory is filled first and read last, so that nothing is unwritten and nothing optimised away.

#define WORDS 4096

__device__ __forceinline__ void fill(float* shared) {
#pragma unroll 1
    for (int k = (int)threadIdx.x; k < WORDS; k += 32) shared[k] = __int_as_float(k);
    __syncthreads();
}

template <int LENGTH>
__device__ __forceinline__ float load(const float* shared, int word) {
    float v[4] = {0, 0, 0, 0};
    const unsigned at = (unsigned)__cvta_generic_to_shared(shared + word);
    if (LENGTH == 1) asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v[0]) : "r"(at));
    if (LENGTH == 2) asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(v[0]), "=f"(v[1]) : "r"(at));
    if (LENGTH == 4)
        asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]) : "r"(at));
    return v[0] + 2 * v[1] + 3 * v[2] + 4 * v[3];
}

template <int LENGTH>
__device__ __forceinline__ void store(float* shared, int word, float value) {
    const unsigned at = (unsigned)__cvta_generic_to_shared(shared + word);
    if (LENGTH == 1) asm volatile("st.shared.f32 [%0], %1;" ::"r"(at), "f"(value) : "memory");
    if (LENGTH == 2) asm volatile("st.shared.v2.f32 [%0], {%1, %1};" ::"r"(at), "f"(value) : "memory");
    if (LENGTH == 4) asm volatile("st.shared.v4.f32 [%0], {%1, %1, %1, %1};" ::"r"(at), "f"(value) : "memory");
}

template <int LENGTH>
__global__ void shared_load(const int* where, float* out) {
    __shared__ __align__(16) float shared[WORDS];
    fill(shared);
    out[threadIdx.x] = load<LENGTH>(shared, where[threadIdx.x]);
}

template <int LENGTH>
__global__ void shared_store(const int* where, float* out) {
    __shared__ __align__(16) float shared[WORDS];
    fill(shared);
    store<LENGTH>(shared, where[threadIdx.x], __int_as_float((int)threadIdx.x));
    __syncthreads();
    out[threadIdx.x] = shared[threadIdx.x];
}

// Lanes whose word is negative stay away.
template <int LENGTH>
__global__ void shared_load_some(const int* where, float* out) {
    __shared__ __align__(16) float shared[WORDS];
    fill(shared);
    const int word = where[threadIdx.x];
    float sum = 0;
    if (word >= 0) sum = load<LENGTH>(shared, word);
    out[threadIdx.x] = sum;
}

template <int LENGTH>
__global__ void global_load(const int* where, const float* in, float* out) {
    const float* from = in + where[threadIdx.x];
    float sum;
    if (LENGTH == 1) sum = __ldcg(from);
    if (LENGTH == 2) { const float2 v = __ldcg((const float2*)from); sum = v.x + v.y; }
    if (LENGTH == 4) { const float4 v = __ldcg((const float4*)from); sum = v.x + v.y + v.z + v.w; }
    out[threadIdx.x] = sum;
}

template <int LENGTH>
__global__ void global_store(const int* where, float* out) {
    float* to = out + where[threadIdx.x];
    const float value = __int_as_float((int)threadIdx.x);
    if (LENGTH == 1) *to = value;
    if (LENGTH == 2) *(float2*)to = make_float2(value, value);
    if (LENGTH == 4) *(float4*)to = make_float4(value, value, value, value);
}

// Bytes: sub-word accesses.
extern "C" __global__ void global_load_byte(const int* where, const unsigned char* in, unsigned char* out) {
    out[threadIdx.x] = in[where[threadIdx.x]];
}

// Several warps and blocks, some lanes off, loops of different lengths: instructions, threads and sectors all vary.
extern "C" __global__ void ragged(const float* in, float* out, int n) {
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= n) return;
    float sum = 0;
    for (int k = 0; k <= i % 7; k++) sum += in[(i * 3 + k) % n];
    if (i & 1) sum *= 2;
    out[i] = sum;
}

extern "C" __global__ void atomics(const int* where, unsigned* global, unsigned* out) {
    __shared__ unsigned shared[64];
    if (threadIdx.x < 64) shared[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&shared[where[threadIdx.x] & 63], 1u);
    atomicMax(&global[where[threadIdx.x]], threadIdx.x);
    __syncthreads();
    if (threadIdx.x < 64) out[threadIdx.x] = shared[threadIdx.x];
}
