// Blocks of a cluster in each other's shared memory without an order: each kernel with its bug and without. `// NAME` marks the lines reported.
#include "far_accesses.cuh"

// Each step reads what the neighbour wrote; its next write has to come after that.
template <bool GOOD> __device__ void neighbour_loop(float* out) {
    float sum = 0, seen;
    for (int step = 0; step < 3; ++step) {
        memory[threadIdx.x] = step + threadIdx.x;  // REWRITTEN
        cluster_sync();
        load_far(seen, there(place(threadIdx.x)));  // NEIGHBOUR
        sum += seen;
        if (GOOD || step == 2) cluster_sync();
    }
    out[128 * cluster_rank() + threadIdx.x] = sum;
}

// The neighbour's store is ordered within its own block only.
template <bool GOOD> __device__ void block_barrier_only(float* out) {
    float seen;
    memory[threadIdx.x] = threadIdx.x;  // STORED
    cluster_sync();
    memory[threadIdx.x] = 2 * threadIdx.x;  // AGAIN_STORED
    if (GOOD) cluster_sync();
    else __syncthreads();
    load_far(seen, there(place(threadIdx.x)));  // TOO_EARLY
    out[128 * cluster_rank() + threadIdx.x] = seen;
    cluster_sync();
}

// The owner reads what its neighbour stored in its memory.
template <bool GOOD> __device__ void owner_reads(float* out) {
    memory[threadIdx.x] = 0;
    cluster_sync();
    store_far(there(place(threadIdx.x)), float(threadIdx.x));  // FAR_STORE
    if (GOOD) cluster_sync();
    else __syncthreads();
    out[128 * cluster_rank() + threadIdx.x] = memory[threadIdx.x];  // OWNER
    cluster_sync();
}

// Atomic operations of the neighbour, and the owner's read of their sum.
template <bool GOOD> __device__ void histogram(float* out) {
    words()[threadIdx.x] = 0;
    cluster_sync();
    asm volatile("red.shared::cluster.add.u32 [%0], 1;" ::"r"(there(place(threadIdx.x * 7 % 128))) : "memory");  // BIN
    if (GOOD) cluster_sync();
    out[128 * cluster_rank() + threadIdx.x] = words()[threadIdx.x];  // SUM
    cluster_sync();
}

// One warp waits for the neighbour's arrival; the others read as well.
template <bool GOOD> __device__ void one_warp_waits(float* out) {
    begin(128);
    cluster_sync();
    store_far(there(place(threadIdx.x)), float(threadIdx.x));  // SENT_FAR
    arrive_cluster(there(cell(0)));
    if (threadIdx.x < 32) wait(cell(0), 0);
    if (GOOD) __syncthreads();
    out[128 * cluster_rank() + threadIdx.x] = memory[threadIdx.x];  // NOT_WAITED
    cluster_sync();
}

// A value that st.async brings is read before its mbarrier's phase has ended.
template <bool GOOD> __device__ void async_store(float* out) {
    begin(1);
    if (threadIdx.x == 0) arrive_expect(cell(0), 512);
    cluster_sync();
    store_async(there(place(threadIdx.x)), threadIdx.x, there(cell(0)));  // ASYNC_STORE
    if (GOOD) wait(cell(0), 0);
    else __syncthreads();
    out[128 * cluster_rank() + threadIdx.x] = words()[threadIdx.x];  // BEFORE_STORE
    wait(cell(0), 0);
    cluster_sync();
}

// The same of a sum.
template <bool GOOD> __device__ void async_sum(float* out) {
    begin(1);
    words()[threadIdx.x] = 1;
    if (threadIdx.x == 0) arrive_expect(cell(0), 512);
    cluster_sync();
    reduce_async(there(place(threadIdx.x)), 5, there(cell(0)));  // ASYNC_SUM
    if (GOOD) wait(cell(0), 0);
    out[128 * cluster_rank() + threadIdx.x] = words()[threadIdx.x];  // BEFORE_SUM
    wait(cell(0), 0);
    cluster_sync();
}

// Nothing has written the memory that a sum is added to.
template <bool GOOD> __device__ void sum_of_nothing(float* out) {
    begin(1);
    if (GOOD) words()[threadIdx.x] = 0;
    if (threadIdx.x == 0) arrive_expect(cell(0), 512);
    cluster_sync();
    reduce_async(there(place(threadIdx.x)), 5, there(cell(0)));  // OF_NOTHING
    wait(cell(0), 0);
    out[128 * cluster_rank() + threadIdx.x] = words()[threadIdx.x];
    cluster_sync();
}

// Both blocks copy from their shared memory to the neighbour's; the source is written again.
template <bool GOOD> __device__ void copy_source(float* out) {
    begin(1);
    memory[threadIdx.x] = threadIdx.x;
    if (threadIdx.x == 0) arrive_expect(cell(0), 512);
    fence_async();
    cluster_sync();
    if (threadIdx.x == 0) copy_far(there(place(256)), place(0), 512, there(cell(0)));  // SOURCE
    wait(cell(0), 0);
    if (GOOD) cluster_sync();
    memory[threadIdx.x] = 2;  // SOURCE_AGAIN
    out[128 * cluster_rank() + threadIdx.x] = memory[256 + threadIdx.x];
    cluster_sync();
}

// The owner still reads where the neighbour's copy writes.
template <bool GOOD> __device__ void copy_target(float* out) {
    begin(1);
    memory[threadIdx.x] = threadIdx.x;
    memory[256 + threadIdx.x] = 3;
    if (threadIdx.x == 0) arrive_expect(cell(0), 512);
    fence_async();
    cluster_sync();
    out[128 * cluster_rank() + threadIdx.x] = memory[256 + threadIdx.x];  // TARGET_READ
    if (GOOD) cluster_sync();
    else __syncthreads();
    if (threadIdx.x == 0) copy_far(there(place(256)), place(0), 512, there(cell(0)));  // TARGET
    wait(cell(0), 0);
    cluster_sync();
}

// A bulk sum in the neighbour's memory, which the owner reads too early.
template <bool GOOD> __device__ void copy_sum(float* out) {
    begin(1);
    words()[threadIdx.x] = threadIdx.x;
    words()[256 + threadIdx.x] = 3;
    if (threadIdx.x == 0) arrive_expect(cell(0), 512);
    fence_async();
    cluster_sync();
    if (threadIdx.x == 0) reduce_far(there(place(256)), place(0), 512, there(cell(0)));  // FAR_SUM
    if (GOOD) wait(cell(0), 0);
    else __syncthreads();
    out[128 * cluster_rank() + threadIdx.x] = words()[256 + threadIdx.x];  // SUM_EARLY
    wait(cell(0), 0);
    cluster_sync();
}

// The neighbour ends while this block may still read its memory, whichever comes first.
template <bool GOOD> __device__ void neighbour_ends(float* out) {
    float seen = 0;
    memory[threadIdx.x] = threadIdx.x;
    cluster_sync();
    if (cluster_rank() == 0) load_far(seen, there(place(threadIdx.x)));  // LAST_VISIT
    out[128 * cluster_rank() + threadIdx.x] = seen;
    if (GOOD) cluster_sync();
}

// The block ends before a copy from its memory has read it.
template <bool GOOD> __device__ void sender_ends(float* out) {
    begin(1);
    memory[threadIdx.x] = threadIdx.x;
    if (threadIdx.x == 0 && cluster_rank() == 1) arrive_expect(cell(0), 512);
    fence_async();
    cluster_sync();
    if (cluster_rank() == 0) {
        if (threadIdx.x == 0) copy_far(there(place(256)), place(0), 512, there(cell(0)));  // SENDER
        out[threadIdx.x] = 0;
    } else {
        wait(cell(0), 0);
        out[128 + threadIdx.x] = memory[256 + threadIdx.x];
    }
    if (GOOD) cluster_sync();
}

// A relaxed arrival makes nothing known, unless a fence comes before it.
template <bool GOOD> __device__ void relaxed_arrival(float* out) {
    float seen;
    memory[threadIdx.x] = threadIdx.x;  // HELD_BACK
    if (GOOD) asm volatile("fence.acq_rel.cluster;" ::: "memory");
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
    cluster_wait();
    load_far(seen, there(place(threadIdx.x)));  // NOT_RELEASED
    out[128 * cluster_rank() + threadIdx.x] = seen;
    // It keeps the block alive all the same.
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
    cluster_wait();
}

CLUSTERS(relaxed_arrival)
CLUSTERS(neighbour_loop)
CLUSTERS(block_barrier_only)
CLUSTERS(owner_reads)
CLUSTERS(histogram)
CLUSTERS(one_warp_waits)
CLUSTERS(async_store)
CLUSTERS(async_sum)
CLUSTERS(sum_of_nothing)
CLUSTERS(copy_source)
CLUSTERS(copy_target)
CLUSTERS(copy_sum)
CLUSTERS(neighbour_ends)
CLUSTERS(sender_ends)
