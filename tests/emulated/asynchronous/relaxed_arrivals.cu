// Mbarriers that relaxed arrivals at a cluster's barrier make known: each kernel with its bug and without. `// NAME` marks
// the lines reported.
#include "hazard_pairs.cuh"

// A relaxed arrival makes an mbarrier known only behind fence.mbarrier_init.
template <bool GOOD> __device__ void relaxed_init(float* out) {
    if (threadIdx.x == 0) {
        mbarrier_init(cell(0), 128);  // NOT_FENCED
        if (GOOD) fence_mbarrier_init();
    }
    __syncwarp();
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
    arrive_count(cell(0), 1);  // EARLY_USE
    wait(cell(0), 0);
    out[128 * cluster_rank() + threadIdx.x] = 1;
}

// An mbarrier is used between the arrival at the cluster's barrier and the wait.
template <bool GOOD> __device__ void split_init(float* out) {
    if (threadIdx.x == 0) {
        mbarrier_init(cell(0), 128);  // BEHIND_WAIT
        fence_mbarrier_init();
    }
    __syncwarp();
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
    if (GOOD) asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
    arrive_count(cell(0), 1);  // BEFORE_WAIT
    if (!GOOD) asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
    wait(cell(0), 0);
    out[128 * cluster_rank() + threadIdx.x] = 1;
}

CLUSTERS(relaxed_init)
CLUSTERS(split_init)
