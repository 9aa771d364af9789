// Kernels whose bug shows far from its cause, with their right twins. `// NAME` marks the lines reported.
#include "hazard_pairs.cuh"

__shared__ u64 full[2], empty[2];

#define multicast_load(to, from, bytes, barrier, blocks) \
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;" ::"r"(to), \
    "l"(from), "r"(bytes), "r"(barrier), "h"(static_cast<unsigned short>(blocks)) : "memory")
#define store_far(to, value) \
    asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(to), "f"(value) : "memory")

__device__ void begin_ring(u32 readers) {
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < 2; ++stage) {
            mbarrier_init(shared_address(&full[stage]), 1);
            mbarrier_init(shared_address(&empty[stage]), readers);
        }
        fence_mbarrier_init();
    }
    __syncthreads();
}

// No barrier at the end of the loop: the thread that copies runs ahead of the other warps.
template <bool GOOD> __device__ void run_ahead(const float* in, float* out) {
    begin_ring(1);
    float sum = 0;
    for (int step = 0; step < 8; ++step) {
        const int stage = step % 2;
        if (threadIdx.x == 0) {
            arrive_expect(shared_address(&full[stage]), 512);  // AHEAD
            bulk_load(shared_address(memory + 128 * stage), in, 512, shared_address(&full[stage]));
        }
        wait(shared_address(&full[stage]), step / 2 % 2);  // LEFT_BEHIND
        sum += memory[128 * stage + threadIdx.x];
        if (GOOD) __syncthreads();
    }
    out[threadIdx.x] = sum;
}

// The readers of a stage never arrive.
template <bool GOOD> __device__ void never_empty(const float* in, float* out) {
    begin_ring(96);
    float sum = 0;
    for (int step = 0; step < 8; ++step) {
        const int stage = step % 2;
        if (threadIdx.x == 0) {
            wait(shared_address(&empty[stage]), step / 2 % 2 ^ 1);  // NEVER_EMPTY
            arrive_expect(shared_address(&full[stage]), 512);  // FILLS
            bulk_load(shared_address(memory + 128 * stage), in, 512, shared_address(&full[stage]));
        }
        if (threadIdx.x >= 32) {
            wait(shared_address(&full[stage]), step / 2 % 2);  // NEVER_FULL
            sum += memory[128 * stage + threadIdx.x];
            if (GOOD) arrive(shared_address(&empty[stage]));
        }
    }
    out[threadIdx.x] = sum;
}

// A lane of each reading warp does not arrive.
template <bool GOOD> __device__ void some_never(const float* in, float* out) {
    begin_ring(96);
    float sum = 0;
    for (int step = 0; step < 8; ++step) {
        const int stage = step % 2;
        if (threadIdx.x == 0) {
            wait(shared_address(&empty[stage]), step / 2 % 2 ^ 1);  // SOME_EMPTY
            arrive_expect(shared_address(&full[stage]), 512);
            bulk_load(shared_address(memory + 128 * stage), in, 512, shared_address(&full[stage]));
        }
        if (threadIdx.x >= 32) {
            wait(shared_address(&full[stage]), step / 2 % 2);
            sum += memory[128 * stage + threadIdx.x];
            if (GOOD || threadIdx.x % 32 != 5) arrive(shared_address(&empty[stage]));  // SOME_ARRIVE
        }
    }
    out[threadIdx.x] = sum;
}

// The readers arrive at one stage only.
template <bool GOOD> __device__ void wrong_stage(const float* in, float* out) {
    begin_ring(96);
    float sum = 0;
    for (int step = 0; step < 8; ++step) {
        const int stage = step % 2;
        if (threadIdx.x == 0) {
            wait(shared_address(&empty[stage]), step / 2 % 2 ^ 1);  // WRONG_EMPTY
            arrive_expect(shared_address(&full[stage]), 512);
            bulk_load(shared_address(memory + 128 * stage), in, 512, shared_address(&full[stage]));
        }
        if (threadIdx.x >= 32) {
            wait(shared_address(&full[stage]), step / 2 % 2);
            sum += memory[128 * stage + threadIdx.x];
            if (GOOD || stage == 0) arrive(shared_address(&empty[stage]));  // ONE_STAGE
        }
    }
    out[threadIdx.x] = sum;
}

// The thread that fills stages ends after too few steps.
template <bool GOOD> __device__ void ends_early(const float* in, float* out) {
    begin_ring(96);
    if (threadIdx.x < 32) {
        for (int step = 0; step < (GOOD ? 8 : 6) && threadIdx.x == 0; ++step) {
            const int stage = step % 2;
            wait(shared_address(&empty[stage]), step / 2 % 2 ^ 1);
            arrive_expect(shared_address(&full[stage]), 512);  // LAST_FILL
            bulk_load(shared_address(memory + 128 * stage), in, 512, shared_address(&full[stage]));
        }
        return;
    }
    float sum = 0;
    for (int step = 0; step < 8; ++step) {
        const int stage = step % 2;
        wait(shared_address(&full[stage]), step / 2 % 2);  // NO_MORE
        sum += memory[128 * stage + threadIdx.x];
        arrive(shared_address(&empty[stage]));
    }
    out[threadIdx.x] = sum;
}

// More bytes are expected than the copies bring.
template <bool GOOD> __device__ void expects_more(const float* in, float* out) {
    begin_ring(1);
    if (threadIdx.x == 0) {
        arrive_expect(shared_address(&full[1]), GOOD ? 512 : 1024);  // MORE
        bulk_load(shared_address(memory), in, 256, shared_address(&full[1]));  // FIRST_HALF
        bulk_load(shared_address(memory + 64), in, 256, shared_address(&full[1]));  // SECOND_HALF
    }
    wait(shared_address(&full[1]), 0);  // WAITS
    out[threadIdx.x] = memory[threadIdx.x];
}

// Fewer bytes are expected than the copies bring.
template <bool GOOD> __device__ void expects_less(const float* in, float* out) {
    begin_ring(1);
    if (threadIdx.x == 0) {
        arrive_expect(shared_address(&full[1]), GOOD ? 512 : 256);  // LESS
        bulk_load(shared_address(memory), in, 256, shared_address(&full[1]));  // LEFT_HALF
        bulk_load(shared_address(memory + 64), in, 256, shared_address(&full[1]));  // RIGHT_HALF
    }
    __syncthreads();
    wait(shared_address(&full[1]), 0);
    out[threadIdx.x] = memory[threadIdx.x];
}

// Copies come before the bytes are expected, for several phases: that is allowed.
extern "C" __global__ void copies_first(const float* in, float* out) {
    begin_ring(1);
    float sum = 0;
    for (int step = 0; step < 4; ++step) {
        if (threadIdx.x == 0) {
            bulk_load(shared_address(memory), in, 256, shared_address(&full[0]));
            bulk_load(shared_address(memory + 64), in, 256, shared_address(&full[0]));
            arrive_expect(shared_address(&full[0]), 512);
        }
        wait(shared_address(&full[0]), step % 2);
        sum += memory[threadIdx.x];
        __syncthreads();
    }
    out[threadIdx.x] = sum;
}

// A multicast goes to one block of the cluster, and both expect it.
template <bool GOOD> __device__ void one_block(const float* in, float* out) {
    begin_ring(1);
    cluster_sync();
    if (threadIdx.x == 0) {
        arrive_expect(shared_address(&full[0]), 1024);  // BOTH_EXPECT
        if (cluster_rank() == 0)
            multicast_load(shared_address(memory), in, 512, shared_address(&full[0]), GOOD ? 3 : 1);  // TO_ONE
        bulk_load(shared_address(memory + 128), in, 512, shared_address(&full[0]));  // OWN
    }
    wait(shared_address(&full[0]), 0);
    out[128 * cluster_rank() + threadIdx.x] = memory[threadIdx.x] + memory[128 + threadIdx.x];
    cluster_sync();
}

// Both barriers of the cluster are missing: that before the reads is the cause that matters.
template <bool GOOD> __device__ void no_cluster_sync(float* out) {
    memory[threadIdx.x] = 0;
    if (GOOD) cluster_sync();
    store_far(map_to(shared_address(memory + threadIdx.x), 1 - cluster_rank()), 1.0f);  // FAR_WRITE
    if (GOOD) cluster_sync();
    out[128 * cluster_rank() + threadIdx.x] = memory[threadIdx.x];  // OWN_READ
}

PAIR(run_ahead, (const float* in, float* out), (in, out))
PAIR(never_empty, (const float* in, float* out), (in, out))
PAIR(some_never, (const float* in, float* out), (in, out))
PAIR(wrong_stage, (const float* in, float* out), (in, out))
PAIR(ends_early, (const float* in, float* out), (in, out))
PAIR(expects_more, (const float* in, float* out), (in, out))
PAIR(expects_less, (const float* in, float* out), (in, out))
CLUSTERS(no_cluster_sync)
extern "C" __global__ void __cluster_dims__(2, 1, 1) one_block_bad(const float* in, float* out) { one_block<false>(in, out); }
extern "C" __global__ void __cluster_dims__(2, 1, 1) one_block_good(const float* in, float* out) { one_block<true>(in, out); }
