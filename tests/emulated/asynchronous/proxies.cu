// Proxy fences that lack, or come too late: each kernel with its bug and without. `// NAME` marks the lines reported.
#include "hazard_pairs.cuh"

// A bulk store reads what threads wrote: every writer has to fence before the barrier.
template <bool GOOD> __device__ void fence_of_writers(float* out) {
    memory[threadIdx.x] = threadIdx.x;  // WRITER
    if (GOOD) fence_async();
    __syncthreads();
    if (threadIdx.x == 0) {
        if (!GOOD) fence_async();
        bulk_store(out, shared_address(memory), 512);  // STORE
        commit();
        wait_stores(0);
    }
}

// Every writer fences, but after the barrier: the store may come before the others' fences.
template <bool GOOD> __device__ void fence_too_late(float* out) {
    for (int step = 0; step < 2; ++step) {
        memory[128 * step + threadIdx.x] = threadIdx.x;  // UNSEEN
        if (GOOD || step == 0) fence_async();
        __syncthreads();
        if (!GOOD && step == 1) fence_async();
        if (threadIdx.x == 0) {
            bulk_store(out + 128 * step, shared_address(memory + 128 * step), 512);  // SENT
            commit();
        }
    }
    wait_stores(0);
}

// A copy overwrites what threads wrote.
template <bool GOOD> __device__ void fence_before_load(const float* in, float* out) {
    begin(1);
    memory[threadIdx.x] = in[127 - threadIdx.x];  // FIRST
    if (GOOD) fence_async();
    __syncthreads();
    const float seen = memory[127 - threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) {
        arrive_expect(cell(0), 512);
        bulk_load(shared_address(memory), in, 512, cell(0));  // LOAD
    }
    wait(cell(0), 0);
    out[threadIdx.x] = memory[threadIdx.x] + seen;
}

// An unrolled loop sends what threads wrote.
template <bool GOOD> __device__ void unrolled(float* out) {
    for (int i = 0; i < 8; ++i) memory[128 * i + threadIdx.x] = i;  // EACH
    if (GOOD) fence_async();
    __syncthreads();
    if (threadIdx.x == 0) {
#pragma unroll
        for (int i = 0; i < 4; ++i) bulk_store(out + 64 * i, shared_address(memory + 128 * i), 256);  // UNROLLED
        commit();
        wait_stores(0);
    }
}

PAIR(fence_of_writers, (float* out), (out))
PAIR(fence_too_late, (float* out), (out))
PAIR(fence_before_load, (const float* in, float* out), (in, out))
PAIR(unrolled, (float* out), (out))
