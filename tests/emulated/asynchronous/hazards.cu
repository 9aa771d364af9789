// Pairs of kernels: one with the bug that its name says, and one that is right. `// NAME` marks the lines reported.
#include "asynchronous.cuh"

__shared__ alignas(1024) float memory[1024];
__shared__ u64 cells[4];

__device__ u32 cell(int number) { return shared_address(&cells[number]); }
__device__ void begin(u32 count) {
    if (threadIdx.x == 0) {
        mbarrier_init(cell(0), count);
        mbarrier_init(cell(1), count);
        fence_mbarrier_init();
    }
    __syncthreads();
}

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

// The parity of a wait does not alternate: the second one tests the first phase again.
template <bool GOOD> __device__ void parity(const float* in, float* out) {
    begin(1);
    float sum = 0;
    for (int step = 0; step < 2; ++step) {
        if (threadIdx.x == 0) {
            arrive_expect(cell(0), 512);
            bulk_load(shared_address(memory), in + 128 * step, 512, cell(0));
        }
        wait(cell(0), GOOD ? step : 0);
        sum += memory[threadIdx.x];  // EARLY
        __syncthreads();
    }
    out[threadIdx.x] = sum;
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

// More arrivals than a phase has.
template <bool GOOD> __device__ void many_arrivals(float* out) {
    begin(128);
    if (threadIdx.x == 0 && !GOOD) {
        arrive(cell(0));
        arrive_count(cell(0), 128);  // MANY
    }
    if (GOOD) arrive(cell(0));
    wait(cell(0), 0);
    out[threadIdx.x] = 1;
}

// One arrival is missing: nobody goes on.
template <bool GOOD> __device__ void few_arrivals(float* out) {
    begin(128);
    if (GOOD || threadIdx.x != 77) arrive(cell(0));
    wait(cell(0), 0);  // FEW
    out[threadIdx.x] = 1;
}

// Bytes that are expected never come.
template <bool GOOD> __device__ void few_bytes(const float* in, float* out) {
    begin(1);
    if (threadIdx.x == 0) {
        arrive_expect(cell(0), GOOD ? 256 : 512);
        bulk_load(shared_address(memory), in, 256, cell(0));
    }
    wait(cell(0), 0);  // HANG
    out[threadIdx.x] = memory[threadIdx.x / 2];
}

// The same with a test that never waits.
template <bool GOOD> __device__ void polled(float* out) {
    begin(128);
    if (GOOD || threadIdx.x != 77) arrive(cell(0));
    while (!test_parity(cell(0), 0)) {
    }
    out[threadIdx.x] = 1;
}

// An mbarrier is used by another warp before a barrier makes its initialisation known.
template <bool GOOD> __device__ void unknown_barrier(float* out) {
    if (threadIdx.x == 0) mbarrier_init(cell(0), 128);  // INIT
    if (GOOD || threadIdx.x < 32) __syncwarp();
    if (GOOD) __syncthreads();
    arrive(cell(0));  // USE
    wait(cell(0), 0);
    out[threadIdx.x] = 1;
}

// Copies use an mbarrier whose initialisation no fence shows to the asynchronous proxy.
template <bool GOOD> __device__ void hidden_barrier(const float* in, float* out) {
    if (threadIdx.x == 0) {
        mbarrier_init(cell(0), 1);  // HIDDEN
        if (GOOD) fence_mbarrier_init();
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        arrive_expect(cell(0), 512);
        bulk_load(shared_address(memory), in, 512, cell(0));  // USER
    }
    wait(cell(0), 0);
    out[threadIdx.x] = memory[threadIdx.x];
}

// An mbarrier that was never initialised.
template <bool GOOD> __device__ void no_barrier(float* out) {
    if (GOOD) begin(128);
    arrive(cell(0));  // NONE
    out[threadIdx.x] = 1;
}

// An ordinary store hits the mbarrier's word.
template <bool GOOD> __device__ void spoilt_barrier(float* out) {
    begin(128);
    if (!GOOD && threadIdx.x == 3) *reinterpret_cast<volatile u64*>(&cells[0]) = 7;
    __syncthreads();
    arrive(cell(0));  // SPOILT
    out[threadIdx.x] = 1;
}

// More bytes than an mbarrier counts.
template <bool GOOD> __device__ void overflow(float* out) {
    begin(1);
    if (threadIdx.x == 0) {
        expect(cell(0), 1000000);
        expect(cell(0), GOOD ? 48575 : 48576);  // OVERFLOW
        complete(cell(0), 1000000);
        complete(cell(0), GOOD ? 48575 : 48576);
        arrive(cell(0));
    }
    out[threadIdx.x] = 1;
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

// A block of the cluster ends while another one reads its memory.
template <bool GOOD> __device__ void cluster_end(float* out) {
    memory[threadIdx.x] = threadIdx.x;
    cluster_sync();
    if (cluster_rank() == 1) {
        float seen;
        asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(seen) : "r"(map_to(shared_address(&memory[threadIdx.x]), 0)) : "memory");  // GONE
        out[threadIdx.x] = seen;
    }
    if (GOOD) cluster_sync();
}

// An arrival at an mbarrier of a block that has ended.
template <bool GOOD> __device__ void late_arrival(float* out) {
    begin(128);
    cluster_sync();
    if (cluster_rank() == 1) arrive_cluster(map_to(cell(0), 0));  // LATER
    if (GOOD) cluster_sync();
    out[128 * cluster_rank() + threadIdx.x] = 1;
}

// One warp never arrives at the cluster's barrier: it waits for an mbarrier that only comes after it.
template <bool GOOD> __device__ void cluster_hang(float* out) {
    begin(256);
    cluster_sync();
    for (u32 rank = 0; rank < 2; ++rank) arrive_cluster(map_to(cell(0), rank));
    if (!GOOD && cluster_rank() == 1 && threadIdx.x / 32 == 2) wait(cell(1), 0);
    asm volatile("barrier.cluster.arrive;" ::: "memory");
    asm volatile("barrier.cluster.wait;" ::: "memory");  // TOGETHER
    wait(cell(0), 0);
    out[128 * cluster_rank() + threadIdx.x] = 1;
}

// A remote mbarrier is used before the cluster's barrier.
template <bool GOOD> __device__ void cluster_init(float* out) {
    if (threadIdx.x == 0) {
        mbarrier_init(cell(0), 2);  // THEIRS
        fence_mbarrier_init();
    }
    __syncthreads();
    if (GOOD || cluster_rank() == 0) cluster_sync();
    if (threadIdx.x == 0) {
        arrive_cluster(map_to(cell(0), 1 - cluster_rank()));  // REMOTE
        arrive_cluster(cell(0));
    }
    if (!GOOD && cluster_rank() == 1) cluster_sync();
    wait(cell(0), 0);
    out[128 * cluster_rank() + threadIdx.x] = 1;
    cluster_sync();
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

#define PAIR(NAME, PARAMETERS, ARGUMENTS)                                            \
    extern "C" __global__ void NAME##_bad PARAMETERS { NAME<false> ARGUMENTS; }     \
    extern "C" __global__ void NAME##_good PARAMETERS { NAME<true> ARGUMENTS; }
#define CLUSTERS(NAME)                                                                                  \
    extern "C" __global__ void __cluster_dims__(2, 1, 1) NAME##_bad(float* out) { NAME<false>(out); }  \
    extern "C" __global__ void __cluster_dims__(2, 1, 1) NAME##_good(float* out) { NAME<true>(out); }
PAIR(fence_of_writers, (float* out), (out))
PAIR(fence_too_late, (float* out), (out))
PAIR(fence_before_load, (const float* in, float* out), (in, out))
PAIR(barrier_before_load, (const float* in, float* out), (in, out))
PAIR(stage_still_read, (float* out), (out))
PAIR(load_over_store, (const float* in, float* out), (in, out))
PAIR(parity, (const float* in, float* out), (in, out))
PAIR(no_wait, (const float* in, float* out), (in, out))
PAIR(many_arrivals, (float* out), (out))
PAIR(few_arrivals, (float* out), (out))
PAIR(polled, (float* out), (out))
PAIR(few_bytes, (const float* in, float* out), (in, out))
PAIR(unknown_barrier, (float* out), (out))
PAIR(hidden_barrier, (const float* in, float* out), (in, out))
PAIR(no_barrier, (float* out), (out))
PAIR(spoilt_barrier, (float* out), (out))
PAIR(overflow, (float* out), (out))
PAIR(store_at_end, (float* out), (out))
PAIR(load_at_end, (const float* in, float* out), (in, out))
PAIR(swizzle_base, (const __grid_constant__ TensorMap map, float* out), (&map, out))
PAIR(unrolled, (float* out), (out))
PAIR(unwritten_part, (const __grid_constant__ TensorMap map), (&map))
CLUSTERS(cluster_end)
CLUSTERS(late_arrival)
CLUSTERS(cluster_hang)
CLUSTERS(cluster_init)
