// Blocks of a cluster in each other's shared memory in an order: by flags, by a lock, by what one thread tells another.
#include "far_accesses.cuh"

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
