// Mbarriers as sm_80 and sm_89 have them.
using u64 = unsigned long long;
using u32 = unsigned int;

__device__ inline u32 shared_address(const void* pointer) { return static_cast<u32>(__cvta_generic_to_shared(pointer)); }
__device__ inline void mbarrier_init(u32 barrier, u32 count) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}
__device__ inline u64 arrive(u32 barrier) {
    u64 state;
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(barrier) : "memory");
    return state;
}
__device__ inline bool test(u32 barrier, u64 state) {
    u32 ended;
    asm volatile("{.reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                 : "=r"(ended) : "r"(barrier), "l"(state) : "memory");
    return ended;
}
__device__ inline u32 pending(u64 state) {
    u32 count;
    asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(count) : "l"(state));
    return count;
}

// All threads exchange values through two phases; the second follows copies of each thread.
extern "C" __global__ void copies(const u32* in, u32* out, u32* counts) {
    __shared__ u32 values[64];
    __shared__ alignas(16) u32 copied[64 * 4];
    __shared__ u64 cell;
    const u32 barrier = shared_address(&cell);
    if (threadIdx.x == 0) mbarrier_init(barrier, 64);
    __syncthreads();
    values[threadIdx.x] = in[threadIdx.x];
    u64 state = arrive(barrier);
    while (!test(barrier, state)) {
    }
    const u32 seen = values[63 - threadIdx.x];
    const u32 to = shared_address(&copied[4 * threadIdx.x]);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(in + 4 * threadIdx.x) : "memory");
    asm volatile("cp.async.mbarrier.arrive.shared.b64 [%0];" ::"r"(barrier) : "memory");
    state = arrive(barrier);
    while (!test(barrier, state)) {
    }
    out[threadIdx.x] = seen + copied[(4 * threadIdx.x + 17) % 256];
    __syncthreads();
    if (threadIdx.x == 0) {
        mbarrier_init(barrier, 3);
        counts[0] = pending(arrive(barrier));
        asm volatile("mbarrier.arrive_drop.shared.b64 %0, [%1];" : "=l"(state) : "r"(barrier) : "memory");
        counts[1] = pending(state);
        state = arrive(barrier);
        counts[2] = pending(state);
        counts[3] = test(barrier, state);
        state = arrive(barrier);
        counts[4] = pending(state);
        asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(barrier) : "memory");
    }
}
