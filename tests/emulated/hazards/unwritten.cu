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

extern "C" __global__ void local_bad(float* out, int n) {
    float own[64];
    for (int i = 0; i < n; ++i) own[i] = 1.0f;
    out[threadIdx.x] = own[threadIdx.x];  // HERE
}
extern "C" __global__ void local_good(float* out, int n) {
    float own[64];
    for (int i = 0; i < 64; ++i) own[i] = i < n ? 1.0f : 0.0f;
    out[threadIdx.x] = own[threadIdx.x];
}

// Half of a pair is written and both are read, as where a compiler spills one of two registers.
extern "C" __global__ void half_of_a_pair(float* out, int use_both) {
    float2 own[4];
    unsigned long long where = __cvta_generic_to_local(&own[use_both]);
    float x, y;
    asm volatile("st.local.f32 [%0], %1;" ::"l"(where), "f"(out[0]) : "memory");
    asm volatile("ld.local.v2.f32 {%0, %1}, [%2];" : "=f"(x), "=f"(y) : "l"(where) : "memory");
    out[threadIdx.x] = use_both ? x + y : x;
}

// Half of a word is written and all of it is read, as where a compiler spills a register of 16 bits.
extern "C" __global__ void half_of_a_word(unsigned* out, int use_all) {
    unsigned own[4];
    unsigned long long where = __cvta_generic_to_local(&own[use_all]);
    unsigned x;
    asm volatile("st.local.u16 [%0], %1;" ::"l"(where), "h"((unsigned short)out[0]) : "memory");
    asm volatile("ld.local.u32 %0, [%1];" : "=r"(x) : "l"(where) : "memory");
    out[threadIdx.x] = use_all ? x : x & 0xFFFF;
}

// Of a structure with padding, copied whole.
struct Padded {
    unsigned char small;
    float large;
};
extern "C" __global__ void padded(float* out, int n) {
    __shared__ alignas(8) Padded all[32];
    all[threadIdx.x].small = (unsigned char)n;
    all[threadIdx.x].large = 0.5f;
    __syncthreads();
    float x, y;
    unsigned where = (unsigned)__cvta_generic_to_shared(&all[31 - threadIdx.x]);
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x), "=f"(y) : "r"(where) : "memory");
    out[threadIdx.x] = y + (__float_as_uint(x) & 255);
}
