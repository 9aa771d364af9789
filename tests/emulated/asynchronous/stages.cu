// Stages: read too early, overwritten too early, or gone with their block: each kernel with its bug and without. `// NAME` marks the lines reported.
#include "hazard_pairs.cuh"

// A stage is read by all threads and loaded again: the reads have to come before the copy.
template <bool GOOD> __device__ void barrier_before_load(const float* in, float* out) {
    begin(1);
    float sum = 0;
    for (int step = 0; step < 2; ++step) {
        if (threadIdx.x == 96) {
            arrive_expect(cell(0), 512);
            bulk_load(shared_address(memory), in + 128 * step, 512, cell(0));  // AGAIN
        }
        wait(cell(0), step);
        __syncthreads();
        sum += memory[127 - threadIdx.x];  // READER
        if (GOOD) __syncthreads();
    }
    out[threadIdx.x] = sum;
}

// A bulk store still reads the stage that is written next.
template <bool GOOD> __device__ void stage_still_read(float* out) {
    for (int step = 0; step < 2; ++step) {
        memory[threadIdx.x] = step + threadIdx.x;  // REUSE
        fence_async();
        __syncthreads();
        if (threadIdx.x == 0) {
            bulk_store(out + 128 * step, shared_address(memory), 512);
            commit();
            if (GOOD) wait_reads(0);
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) wait_stores(0);  // LATE
}

// Every thread waits, but for its own groups: nothing makes the others wait for the thread that stores.
template <bool GOOD> __device__ void others_wait(float* out) {
    for (int step = 0; step < 2; ++step) {
        wait_reads(0);  // OWN
        if (GOOD) __syncthreads();
        memory[threadIdx.x] = step + threadIdx.x;  // OTHERS
        fence_async();
        __syncthreads();
        if (threadIdx.x == 0) {
            bulk_store(out + 128 * step, shared_address(memory), 512);
            commit();
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) wait_stores(0);
}

// A copy overwrites the stage that a bulk store still reads.
template <bool GOOD> __device__ void load_over_store(const float* in, float* out) {
    begin(1);
    for (int step = 0; step < 2; ++step) {
        if (threadIdx.x == 0) {
            arrive_expect(cell(0), 512);
            bulk_load(shared_address(memory), in + 128 * step, 512, cell(0));  // OVER
            wait(cell(0), step);
            bulk_store(out + 128 * step, shared_address(memory), 512);  // UNDER
            commit();
            if (GOOD) wait_reads(0);
        }
    }
    if (threadIdx.x == 0) wait_stores(0);
}

// Nothing waits before the read.
template <bool GOOD> __device__ void no_wait(const float* in, float* out) {
    begin(1);
    if (threadIdx.x == 0) {
        arrive_expect(cell(0), 512);
        bulk_load(shared_address(memory), in, 512, cell(0));  // COPY
    }
    __syncthreads();
    if (GOOD) wait(cell(0), 0);
    out[threadIdx.x] = memory[threadIdx.x];  // UNWAITED
    wait(cell(0), 0);
}

// The block ends before its store has read.
template <bool GOOD> __device__ void store_at_end(float* out) {
    memory[threadIdx.x] = threadIdx.x;
    fence_async();
    __syncthreads();
    if (threadIdx.x == 0) {
        bulk_store(out, shared_address(memory), 512);  // UNREAD
        commit();
        if (GOOD) wait_reads(0);
    }
}

// The block ends before a copy has landed.
template <bool GOOD> __device__ void load_at_end(const float* in, float* out) {
    begin(1);
    if (threadIdx.x == 0) {
        arrive_expect(cell(0), 512);
        bulk_load(shared_address(memory), in, 512, cell(0));  // UNLANDED
        if (GOOD) wait(cell(0), 0);
    }
    out[threadIdx.x] = 1;
}

// The box does not begin where its swizzle's pattern begins.
template <bool GOOD> __device__ void swizzle_base(const TensorMap* map, float* out) {
    begin(1);
    const int start = GOOD ? 256 : 32;
    if (threadIdx.x == 0) {
        arrive_expect(cell(0), 1024);
        tensor_load(shared_address(memory + start), map, cell(0), 0, 0);  // BASE
    }
    wait(cell(0), 0);
    out[threadIdx.x] = memory[start + threadIdx.x];
}

// A box that leaves the tensor is stored; the part outside may be unwritten, as the padding of a tile is.
template <bool GOOD> __device__ void unwritten_part(const TensorMap* map) {
    const int row = threadIdx.x / 8, column = threadIdx.x % 8 * 4;
    if (GOOD ? column < 16 : column < 12)
        for (int i = 0; i < 4; ++i) memory[32 * row + column + i] = i;
    fence_async();
    __syncthreads();
    if (threadIdx.x == 0) {
        tensor_store(map, shared_address(memory), 16, 0);  // PART
        commit();
        wait_stores(0);
    }
}

PAIR(barrier_before_load, (const float* in, float* out), (in, out))
PAIR(stage_still_read, (float* out), (out))
PAIR(others_wait, (float* out), (out))
PAIR(load_over_store, (const float* in, float* out), (in, out))
PAIR(no_wait, (const float* in, float* out), (in, out))
PAIR(store_at_end, (float* out), (out))
PAIR(load_at_end, (const float* in, float* out), (in, out))
PAIR(swizzle_base, (const __grid_constant__ TensorMap map, float* out), (&map, out))
PAIR(unwritten_part, (const __grid_constant__ TensorMap map), (&map))
