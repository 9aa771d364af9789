// Misuse of clusters: each kernel with its bug and without. `// NAME` marks the lines reported.
#include "hazard_pairs.cuh"

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

CLUSTERS(cluster_end)
CLUSTERS(late_arrival)
CLUSTERS(cluster_hang)
CLUSTERS(cluster_init)
