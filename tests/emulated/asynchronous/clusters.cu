// Clusters: blocks that run together, distributed shared memory, remote arrivals, multicast.
#include "asynchronous.cuh"

// Special registers of each block.
extern "C" __global__ void __cluster_dims__(2, 3, 2) places(u32* out) {
    u32 values[15];
#define READ(NUMBER, NAME) asm volatile("mov.u32 %0, %%" NAME ";" : "=r"(values[NUMBER]))
    READ(0, "cluster_ctarank");
    READ(1, "cluster_nctarank");
    READ(2, "cluster_ctaid.x");
    READ(3, "cluster_ctaid.y");
    READ(4, "cluster_ctaid.z");
    READ(5, "cluster_nctaid.x");
    READ(6, "cluster_nctaid.y");
    READ(7, "cluster_nctaid.z");
    READ(8, "clusterid.x");
    READ(9, "clusterid.y");
    READ(10, "clusterid.z");
    READ(11, "nclusterid.x");
    READ(12, "nclusterid.y");
    READ(13, "nclusterid.z");
    asm volatile("{.reg .pred p; mov.pred p, %%is_explicit_cluster; selp.u32 %0, 1, 0, p;}" : "=r"(values[14]));
    const u32 block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    for (int i = 0; i < 15; ++i) out[15 * block + i] = values[i];
}

// Each block reads, adds to and writes the memory of the next one.
extern "C" __global__ void __cluster_dims__(4, 1, 1) neighbours(const u32* in, u32* out) {
    __shared__ u32 mine[64], given[64], sums[2];
    const u32 rank = cluster_rank(), next = (rank + 1) % 4;
    const int at = blockIdx.x * 64 + threadIdx.x;
    mine[threadIdx.x] = in[at];
    if (threadIdx.x < 2) sums[threadIdx.x] = 100 * rank;
    cluster_sync();
    u32 seen, old;
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(seen) : "r"(map_to(shared_address(&mine[threadIdx.x]), next)) : "memory");
    asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(map_to(shared_address(&given[threadIdx.x]), next)), "r"(seen * 2) : "memory");
    asm volatile("atom.shared::cluster.add.u32 %0, [%1], %2;" : "=r"(old) : "r"(map_to(shared_address(&sums[0]), next)), "r"(seen) : "memory");
    asm volatile("red.shared::cluster.max.u32 [%0], %1;" ::"r"(map_to(shared_address(&sums[1]), next)), "r"(seen) : "memory");
    u64 generic;
    asm volatile("mapa.u64 %0, %1, %2;" : "=l"(generic) : "l"(&mine[63 - threadIdx.x]), "r"((rank + 2) % 4));
    const u32 far = *reinterpret_cast<volatile u32*>(generic);
    cluster_sync();
    out[at] = given[threadIdx.x] + far + (threadIdx.x < 2 ? sums[threadIdx.x] : 0);
}

// Block 0 waits for arrivals and asynchronous stores of all blocks.
extern "C" __global__ void __cluster_dims__(4, 1, 1) remote(u32* out) {
    __shared__ alignas(16) u32 data[4][8];
    __shared__ u64 cell;
    const u32 rank = cluster_rank(), barrier = shared_address(&cell);
    if (rank == 0 && threadIdx.x == 0) {
        mbarrier_init(barrier, 4);
        fence_mbarrier_init();
        expect(barrier, 4 * 28);
    }
    if (rank == 0) data[threadIdx.x / 8][threadIdx.x % 8] = 1000;
    if (rank == 0) fence_async();
    cluster_sync();
    const u32 there = map_to(barrier, 0), place = map_to(shared_address(data[rank]), 0);
    if (threadIdx.x == 0) {
        asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(place), "r"(rank), "r"(there) : "memory");
        asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%0], %1, [%2];" ::"r"(place + 4), "r"(rank + 1), "r"(there) : "memory");
        asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.min.s32 [%0], %1, [%2];" ::"r"(place + 8), "r"(-5), "r"(there) : "memory");
        asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.u32 [%0], {%1, %1, %1, %3}, [%2];" ::"r"(place + 16), "r"(rank * 7), "r"(there), "r"(rank) : "memory");
        arrive_cluster(there);
    }
    if (rank == 0) {
        wait(barrier, 0);
        out[threadIdx.x] = data[threadIdx.x / 8][threadIdx.x % 8];
    }
    cluster_sync();
}

// Each block loads a quarter of a tile and sends it to all blocks.
extern "C" __global__ void __cluster_dims__(2, 2, 1) multicast(const __grid_constant__ TensorMap map, const float* in, float* out) {
    __shared__ alignas(128) float tile[4][32], plain[4][32];
    __shared__ u64 cell;
    const u32 rank = cluster_rank(), barrier = shared_address(&cell);
    if (threadIdx.x == 0) {
        mbarrier_init(barrier, 1);
        fence_mbarrier_init();
        arrive_expect(barrier, 4 * 128 + 2 * 128);
    }
    cluster_sync();
    if (threadIdx.x == 0) {
        const unsigned short all = 0xF, upper = 0xC;
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(shared_address(tile[rank])),
                     "l"(&map), "r"(0), "r"(rank), "r"(barrier), "h"(all) : "memory");
        if (rank < 2)
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;" ::"r"(shared_address(plain[rank])),
                         "l"(in + 32 * rank), "r"(128), "r"(barrier), "h"(upper) : "memory");
        if (rank < 2) complete(barrier, 256);
    }
    wait(barrier, 0);
    const u32 block = blockIdx.x + gridDim.x * blockIdx.y;
    for (int i = 0; i < 4; ++i) out[block * 128 + i * 32 + threadIdx.x] = tile[i][threadIdx.x] + (rank > 1 && i < 2 ? plain[i][threadIdx.x] : 0);
    cluster_sync();
}

// Copy and reduce from one block's shared memory to another's.
extern "C" __global__ void __cluster_dims__(2, 1, 1) send(const u32* in, u32* out) {
    __shared__ alignas(16) u32 from[32], to[32];
    __shared__ u64 cell;
    const u32 rank = cluster_rank(), barrier = shared_address(&cell);
    from[threadIdx.x] = in[32 * rank + threadIdx.x];
    to[threadIdx.x] = 7;
    fence_async();
    if (threadIdx.x == 0) {
        mbarrier_init(barrier, 1);
        fence_mbarrier_init();
        arrive_expect(barrier, 128);
    }
    cluster_sync();
    if (threadIdx.x == 0) {
        const u32 target = map_to(shared_address(to), 1 - rank), theirs = map_to(barrier, 1 - rank);
        if (rank == 0)
            asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(target),
                         "r"(shared_address(from)), "r"(128), "r"(theirs) : "memory");
        else
            asm volatile("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [%0], [%1], %2, [%3];" ::"r"(target),
                         "r"(shared_address(from)), "r"(128), "r"(theirs) : "memory");
    }
    wait(barrier, 0);
    out[32 * rank + threadIdx.x] = to[threadIdx.x];
    cluster_sync();
}

// Some threads end before the cluster's barrier.
extern "C" __global__ void __cluster_dims__(2, 1, 1) early(u32* out) {
    if (threadIdx.x >= 32 + 32 * cluster_rank()) return;
    asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
    asm volatile("barrier.cluster.wait;" ::: "memory");
    out[blockIdx.x * 64 + threadIdx.x] = 1;
}

extern "C" __global__ void __cluster_dims__(16, 1, 1) many(u32* out) { out[blockIdx.x] = cluster_rank(); }

// Compiled without clusters, launched with them.
extern "C" __global__ void ranks(u32* out) { out[blockIdx.x + gridDim.x * blockIdx.y] = cluster_rank(); }

// Generic addresses of global, own and remote shared memory: which space they are in, and float additions through them.
extern "C" __global__ void __cluster_dims__(2, 1, 1) generic(float* out, u32* spaces) {
    __shared__ float sum[2];
    const u32 rank = cluster_rank();
    sum[0] = sum[1] = 1000 * rank;
    cluster_sync();
    float* targets[3] = {out + rank, sum, nullptr};
    asm volatile("mapa.u64 %0, %1, %2;" : "=l"(targets[2]) : "l"(&sum[1]), "r"(1 - rank));
    for (int i = 0; i < 3; ++i) {
        u32 cta, cluster;
        asm volatile("{.reg .pred p; isspacep.shared::cta p, %1; selp.u32 %0, 1, 0, p;}" : "=r"(cta) : "l"(targets[i]));
        asm volatile("{.reg .pred p; isspacep.shared::cluster p, %1; selp.u32 %0, 1, 0, p;}" : "=r"(cluster) : "l"(targets[i]));
        if (threadIdx.x == 0) spaces[rank * 3 + i] = 10 * cluster + cta;
        atomicAdd(targets[i], float(threadIdx.x + rank));
    }
    cluster_sync();
    if (threadIdx.x < 2) out[2 + 2 * rank + threadIdx.x] = sum[threadIdx.x];
}
