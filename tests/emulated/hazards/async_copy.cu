// cp.async whose data is read before a wait has brought it.
__device__ __forceinline__ void copy(float* to, const float* from) {
    const unsigned at = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(at), "l"(from) : "memory");
}

extern "C" __global__ void no_wait_bad(const float* in, float* out) {
    __shared__ float s[32];
    copy(&s[threadIdx.x], &in[threadIdx.x]);
    asm volatile("cp.async.commit_group;" ::: "memory");
    out[threadIdx.x] = s[threadIdx.x];  // HERE
}
extern "C" __global__ void no_wait_good(const float* in, float* out) {
    __shared__ float s[32];
    copy(&s[threadIdx.x], &in[threadIdx.x]);
    asm volatile("cp.async.commit_group;" ::: "memory");
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    out[threadIdx.x] = s[threadIdx.x];
}

// Two groups in flight, the second is read while only the first has been waited for.
extern "C" __global__ void wrong_group_bad(const float* in, float* out) {
    __shared__ float s[2][32];
    copy(&s[0][threadIdx.x], &in[threadIdx.x]);
    asm volatile("cp.async.commit_group;" ::: "memory");
    copy(&s[1][threadIdx.x], &in[threadIdx.x + 32]);
    asm volatile("cp.async.commit_group;" ::: "memory");
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    out[threadIdx.x] = s[0][threadIdx.x];
    out[threadIdx.x] += s[1][threadIdx.x];  // HERE
}
extern "C" __global__ void wrong_group_good(const float* in, float* out) {
    __shared__ float s[2][32];
    copy(&s[0][threadIdx.x], &in[threadIdx.x]);
    asm volatile("cp.async.commit_group;" ::: "memory");
    copy(&s[1][threadIdx.x], &in[threadIdx.x + 32]);
    asm volatile("cp.async.commit_group;" ::: "memory");
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    out[threadIdx.x] = s[0][threadIdx.x];
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    out[threadIdx.x] += s[1][threadIdx.x];
}

// A wait brings a thread's own copies; those of another warp need a barrier after it.
extern "C" __global__ void no_barrier_bad(const float* in, float* out) {
    __shared__ float s[64];
    s[threadIdx.x] = 0.0f;
    __syncthreads();
    copy(&s[threadIdx.x], &in[threadIdx.x]);
    asm volatile("cp.async.wait_all;" ::: "memory");
    out[threadIdx.x] = s[63 - threadIdx.x];  // HERE
}
extern "C" __global__ void no_barrier_good(const float* in, float* out) {
    __shared__ float s[64];
    copy(&s[threadIdx.x], &in[threadIdx.x]);
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    out[threadIdx.x] = s[63 - threadIdx.x];
}

// A warp stores the value that is there while another one's copy is on its way: either may come last.
extern "C" __global__ void old_value_bad(const float* in, float* out) {
    __shared__ volatile float s[32];
    const int lane = threadIdx.x % 32;
    if (threadIdx.x < 32) s[lane] = 0.0f;
    __syncthreads();
    if (threadIdx.x >= 32) copy(const_cast<float*>(&s[lane]), &in[lane]);
    if (threadIdx.x < 32) s[lane] = 0.0f;  // HERE
    __syncthreads();
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    out[threadIdx.x] = s[lane];
}
extern "C" __global__ void old_value_good(const float* in, float* out) {
    __shared__ volatile float s[32];
    const int lane = threadIdx.x % 32;
    if (threadIdx.x < 32) s[lane] = 0.0f;
    __syncthreads();
    if (threadIdx.x >= 32) copy(const_cast<float*>(&s[lane]), &in[lane]);
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    out[threadIdx.x] = s[lane];
}

// A load of two words: the copy of the first is on its way, and nothing writes the second.
extern "C" __global__ void one_of_two_bad(const float* in, float* out, int use_both) {
    __shared__ alignas(8) float s[64];
    copy(&s[2 * threadIdx.x], &in[threadIdx.x]);
    float x, y;
    const unsigned at = (unsigned)__cvta_generic_to_shared(&s[2 * threadIdx.x]);
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x), "=f"(y) : "r"(at) : "memory");  // HERE
    out[threadIdx.x] = use_both ? x + y : x;
}
extern "C" __global__ void one_of_two_good(const float* in, float* out, int use_both) {
    __shared__ alignas(8) float s[64];
    copy(&s[2 * threadIdx.x], &in[threadIdx.x]);
    asm volatile("cp.async.wait_all;" ::: "memory");
    float x, y;
    const unsigned at = (unsigned)__cvta_generic_to_shared(&s[2 * threadIdx.x]);
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x), "=f"(y) : "r"(at) : "memory");
    out[threadIdx.x] = use_both ? x + y : x;
}

// The last four of `count` floats reach beyond the end, unless the copy is told how many bytes exist.
extern "C" __global__ void past_the_end_bad(const float* in, float* out, int count) {
    __shared__ float4 s[32];
    const unsigned at = (unsigned)__cvta_generic_to_shared(&s[threadIdx.x]);
    const int first = 4 * threadIdx.x;
    if (first >= count) return;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(&in[first]) : "memory");  // HERE
    asm volatile("cp.async.wait_all;" ::: "memory");
    out[threadIdx.x] = s[threadIdx.x].x;
}
extern "C" __global__ void past_the_end_good(const float* in, float* out, int count) {
    __shared__ float4 s[32];
    const unsigned at = (unsigned)__cvta_generic_to_shared(&s[threadIdx.x]);
    const int first = 4 * threadIdx.x, bytes = 4 * min(max(count - first, 0), 4);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(&in[first]), "r"(bytes) : "memory");
    asm volatile("cp.async.wait_all;" ::: "memory");
    const float4 four = s[threadIdx.x];
    out[threadIdx.x] = four.x + four.y + four.z + four.w;
}
