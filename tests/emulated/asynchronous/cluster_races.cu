// Blocks of a cluster in each other's shared memory without an order: each kernel with its bug and without. `// NAME` marks the lines reported.
#include "hazard_pairs.cuh"

#define load_far(value, address) \
    asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(value) : "r"(address) : "memory")
#define store_far(address, value) \
    asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(address), "f"(value) : "memory")
#define store_async(address, value, barrier) \
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(address), "r"(value), "r"(barrier) : "memory")
#define reduce_async(address, value, barrier) \
    asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%0], %1, [%2];" ::"r"(address), "r"(value), "r"(barrier) : "memory")
#define copy_far(to, from, bytes, barrier) \
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "r"(from), "r"(bytes), "r"(barrier) : "memory")
#define reduce_far(to, from, bytes, barrier) \
    asm volatile("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [%0], [%1], %2, [%3];" ::"r"(to), "r"(from), "r"(bytes), "r"(barrier) : "memory")

__device__ u32 place(int number) { return shared_address(&memory[number]); }
__device__ u32 there(u32 address) { return map_to(address, 1 - cluster_rank()); }
__device__ u32* words() { return reinterpret_cast<u32*>(memory); }

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

// No bugs: orders by flags, by a lock, by what one thread tells another.
__shared__ volatile u32 flag;
extern "C" __global__ void __cluster_dims__(2, 1, 1) flags(float* out) {
    __shared__ float data;
    if (threadIdx.x == 0) flag = 0;
    cluster_sync();
    if (threadIdx.x == 0) {
        const u32 far = there(shared_address(const_cast<u32*>(&flag)));
        store_far(there(shared_address(&data)), float(cluster_rank() + 1));
        asm volatile("fence.acq_rel.cluster;" ::: "memory");
        asm volatile("st.volatile.shared::cluster.u32 [%0], 1;" ::"r"(far) : "memory");
        while (flag == 0) {
        }
        asm volatile("fence.acq_rel.cluster;" ::: "memory");
        out[cluster_rank()] = data;
    }
    cluster_sync();
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) counted(float* out) {
    if (threadIdx.x == 0) flag = 0;
    cluster_sync();
    store_far(there(place(threadIdx.x)), float(threadIdx.x));
    asm volatile("fence.acq_rel.cluster;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("red.release.cluster.shared::cluster.add.u32 [%0], 1;" ::"r"(there(shared_address(const_cast<u32*>(&flag)))) : "memory");
        while (flag == 0) {
        }
    }
    __syncthreads();
    out[128 * cluster_rank() + threadIdx.x] = memory[threadIdx.x];
    cluster_sync();
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) locked(float* out) {
    __shared__ u32 lock;
    if (threadIdx.x == 0) lock = 0, memory[0] = 0;
    cluster_sync();
    if (threadIdx.x == 0) {
        const u32 at = map_to(shared_address(&lock), 0), sum = map_to(place(0), 0);
        u32 taken;
        do {
            asm volatile("atom.acquire.cluster.shared::cluster.cas.b32 %0, [%1], 0, 1;" : "=r"(taken) : "r"(at) : "memory");
        } while (taken);
        float value;
        load_far(value, sum);
        store_far(sum, value + 1);
        asm volatile("atom.release.cluster.shared::cluster.exch.b32 %0, [%1], 0;" : "=r"(taken) : "r"(at) : "memory");
    }
    cluster_sync();
    if (threadIdx.x == 0 && cluster_rank() == 0) out[0] = memory[0];
}

// All blocks add to the words of block 0, asynchronously, by bulk sums and by atomic operations.
extern "C" __global__ void __cluster_dims__(4, 1, 1) summed(float* out) {
    begin(4);
    words()[threadIdx.x] = threadIdx.x;
    words()[256 + threadIdx.x] = 0;
    if (threadIdx.x == 0 && cluster_rank() == 0) expect(cell(0), 8 * 512);
    fence_async();
    cluster_sync();
    const u32 sum = map_to(place(256), 0), at = map_to(place(256 + threadIdx.x), 0), barrier = map_to(cell(0), 0);
    reduce_async(at, 100, barrier);
    if (threadIdx.x == 0) reduce_far(sum, place(0), 512, barrier);
    asm volatile("red.shared::cluster.add.u32 [%0], 1000;" ::"r"(at) : "memory");
    __syncthreads();
    if (threadIdx.x == 0) arrive_cluster(barrier);
    if (cluster_rank() == 0) {
        wait(cell(0), 0);
        out[threadIdx.x] = words()[256 + threadIdx.x];
    }
    cluster_sync();
}
