// Kernels that misuse wgmma, and setmaxnreg, each beside one that does not.
typedef unsigned long long u64;

extern "C" __global__ void nothing() {}

__device__ void fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
__device__ void wait() { asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory"); }

__device__ void multiply(float (&d)[4], u64 word) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %4, 1, 1, 1, 0, 0;"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(word));
}

__device__ u64 operands() {
    __shared__ __align__(1024) unsigned tile[1024];
    for (int i = threadIdx.x; i < 1024; i += 128) tile[i] = 0x3c003c00;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    u64 start = ((unsigned)__cvta_generic_to_shared(tile) & 0x3ffff) >> 4;
    return start | (u64)8 << 16 | (u64)16 << 32;
}

__device__ void load(float (&d)[4], const float *x) {
    for (int i = 0; i < 4; ++i) d[i] = x[threadIdx.x * 4 + i];
}

__device__ void store(float *x, const float (&d)[4]) {
    for (int i = 0; i < 4; ++i) x[threadIdx.x * 4 + i] = d[i];
}

extern "C" __global__ void right(float *x) {
    float d[4];
    u64 word = operands();
    load(d, x);
    fence();
    multiply(d, word);
    multiply(d, word);
    commit();
    wait();
    for (int i = 0; i < 4; ++i) d[i] *= 0.5f;
    fence();
    multiply(d, word);
    commit();
    wait();
    store(x, d);
}

extern "C" __global__ void no_fence(float *x) {
    float d[4];
    u64 word = operands();
    load(d, x);
    multiply(d, word); // no_fence
    commit();
    wait();
    store(x, d);
}

extern "C" __global__ void late_write(float *x) {
    float d[4];
    u64 word = operands();
    load(d, x);
    fence();
    multiply(d, word);
    commit();
    wait();
    for (int i = 0; i < 4; ++i) d[i] *= 0.5f; // written
    multiply(d, word);                        // late_write
    commit();
    wait();
    store(x, d);
}

extern "C" __global__ void no_wait(float *x) {
    float d[4];
    u64 word = operands();
    load(d, x);
    fence();
    multiply(d, word);
    commit();
    store(x, d);
    wait();
}

extern "C" __global__ void some_lanes(float *x) {
    float d[4];
    u64 word = operands();
    load(d, x);
    if (threadIdx.x % 32 < 16) {
        fence();
        multiply(d, word); // some_lanes
        commit();
        wait();
    }
    store(x, d);
}

__device__ void multiply_once(float *x, u64 word) {
    float d[4];
    load(d, x);
    fence();
    multiply(d, word);
    commit();
    wait(); // alone
    store(x, d);
}

extern "C" __global__ void three_warps(float *x) {
    u64 word = operands();
    if (threadIdx.x < 96) multiply_once(x, word);
}

extern "C" __global__ void stuck_warp(float *x) {
    u64 word = operands();
    if (threadIdx.x < 96) multiply_once(x, word);
    __syncthreads(); // stuck
    x[threadIdx.x] = 1;
}

template <int LESS, int MORE> __device__ void exchange(float *x) {
    if (threadIdx.x < 128)
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(LESS));
    else
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(MORE)); // taken
    x[threadIdx.x] = threadIdx.x;
}

extern "C" __global__ void __launch_bounds__(384, 1) fair(float *x) { exchange<24, 240>(x); }
extern "C" __global__ void __launch_bounds__(384, 1) greedy(float *x) { exchange<40, 240>(x); }

extern "C" __global__ void serialized(float *x, int n) {
    float d[4] = {};
    u64 word = operands();
    for (int i = 0; i < n; ++i) {
        fence();
        multiply(d, word);
        commit();
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
    }
    wait();
    store(x, d);
}

extern "C" __global__ void ignored(float *x) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;"); // ignored
    x[threadIdx.x] = threadIdx.x;
}
