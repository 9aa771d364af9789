// A product of matrices as fast code for Hopper is built: clusters of two blocks, a producer warp that copies tiles by
// tensor maps (the tile of B by multicast), consumer warps, a ring of stages, and a tensor store at the end.
//
// Each block computes 32 x 32 of C. Both blocks of a cluster need the same tile of B: each loads half of it for both.
#include "asynchronous.cuh"

constexpr int TILE = 32, DEPTH = 16, STAGES = 3, CONSUMERS = 4;

struct alignas(1024) Stage {
    float a[TILE][DEPTH];  // swizzle 64
    float b[DEPTH][TILE];
};

// BUG 1: consumers release only their own block's stage. BUG 2: the wait for an empty stage is left out.
template <int BUG>
__device__ void product(const TensorMap* a, const TensorMap* b, const TensorMap* c, int k) {
    __shared__ Stage stages[STAGES];
    __shared__ alignas(128) float result[TILE][TILE];
    __shared__ u64 full[STAGES], empty[STAGES];
    const u32 rank = cluster_rank();
    const int row = blockIdx.x * TILE, column = blockIdx.y * TILE, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; ++i) {
            mbarrier_init(shared_address(&full[i]), 1);
            mbarrier_init(shared_address(&empty[i]), BUG == 1 ? CONSUMERS : 2 * CONSUMERS);
        }
        fence_mbarrier_init();
    }
    cluster_sync();
    const int steps = k / DEPTH;
    if (warp == CONSUMERS) {
        if (lane == 0)
            for (int step = 0; step < steps; ++step) {
                const int i = step % STAGES;
                const u32 barrier = shared_address(&full[i]);
                if (BUG != 2) wait(shared_address(&empty[i]), (step / STAGES + 1) % 2);
                arrive_expect(barrier, u32(sizeof(stages[i].a) + sizeof(stages[i].b)));
                tensor_load(shared_address(stages[i].a), a, barrier, step * DEPTH, row);
                const int half = DEPTH / 2 * rank;
                const unsigned short both = 3;
                asm volatile(
                    "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, "
                    "%3}], [%4], %5;" ::"r"(shared_address(stages[i].b[half])), "l"(b), "r"(column), "r"(step * DEPTH + half),
                    "r"(barrier), "h"(both) : "memory");
            }
    } else {
        float sums[TILE / CONSUMERS] = {};
        for (int step = 0; step < steps; ++step) {
            const int i = step % STAGES;
            wait(shared_address(&full[i]), step / STAGES % 2);
            for (int depth = 0; depth < DEPTH; ++depth)
                for (int r = 0; r < TILE / CONSUMERS; ++r) {
                    const int at = warp * (TILE / CONSUMERS) + r;
                    const int unit = depth / 4 ^ at / 2 % 4;  // swizzle 64: two rows of 64 bytes to a line of 128
                    sums[r] += stages[i].a[at][unit * 4 + depth % 4] * stages[i].b[depth][lane];
                }
            __syncwarp();
            if (lane < 2 && (BUG != 1 || lane == rank)) arrive_cluster(map_to(shared_address(&empty[i]), lane));
        }
        for (int r = 0; r < TILE / CONSUMERS; ++r) result[warp * (TILE / CONSUMERS) + r][lane] = sums[r];
        fence_async();
        asm volatile("bar.sync 1, 128;" ::: "memory");
        if (threadIdx.x == 0) {
            tensor_store(c, shared_address(result), column, row);
            commit();
            wait_stores(0);
        }
    }
    __syncwarp();
    cluster_sync();
}

#define KERNEL(NAME, BUG)                                                                                                      \
    extern "C" __global__ void __cluster_dims__(2, 1, 1)                                                                       \
        NAME(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, const __grid_constant__ TensorMap c, int k) { \
        product<BUG>(&a, &b, &c, k);                                                                                           \
    }
KERNEL(right, 0)
KERNEL(own_stage_only, 1)
KERNEL(no_wait_for_empty, 2)
