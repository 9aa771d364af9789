// Short names for the PTX of sm_90's asynchronous machine. Those of statements are macros, so that their line is the
// caller's.
#pragma once

using u64 = unsigned long long;
using u32 = unsigned int;

__device__ inline u32 shared_address(const void* pointer) { return static_cast<u32>(__cvta_generic_to_shared(pointer)); }

#define mbarrier_init(barrier, count) \
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory")
#define fence_mbarrier_init() \
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory")
#define fence_async() \
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory")
__device__ inline u64 arrive(u32 barrier) {
    u64 state;
    asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(barrier) : "memory");
    return state;
}
#define arrive_count(barrier, count) \
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(count) : "memory")
#define arrive_expect(barrier, bytes) \
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory")
#define expect(barrier, bytes) \
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory")
#define complete(barrier, bytes) \
    asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory")
#define arrive_cluster(barrier) \
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory")
__device__ inline bool test_parity(u32 barrier, u32 parity) {
    u32 ended;
    asm volatile("{.reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                 : "=r"(ended) : "r"(barrier), "r"(parity) : "memory");
    return ended;
}
__device__ inline bool try_parity(u32 barrier, u32 parity) {
    u32 ended;
    asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                 : "=r"(ended) : "r"(barrier), "r"(parity) : "memory");
    return ended;
}
__device__ inline bool try_state(u32 barrier, u64 state) {
    u32 ended;
    asm volatile("{.reg .pred p; mbarrier.try_wait.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                 : "=r"(ended) : "r"(barrier), "l"(state) : "memory");
    return ended;
}
__device__ inline void wait(u32 barrier, u32 parity) {
    while (!try_parity(barrier, parity)) {
    }
}
#define bulk_load(to, from, bytes, barrier) \
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), \
    "l"(from), "r"(bytes), "r"(barrier) : "memory")
#define bulk_store(to, from, bytes) \
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes) : "memory")
#define commit() \
    asm volatile("cp.async.bulk.commit_group;" ::: "memory")
#define wait_stores(left) \
    asm volatile("cp.async.bulk.wait_group %0;" ::"n"(left) : "memory")
#define wait_reads(left) \
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(left) : "memory")
__device__ inline u32 cluster_rank() {
    u32 rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
__device__ inline u32 map_to(u32 address, u32 rank) {
    u32 there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
    return there;
}
__device__ inline void cluster_arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
__device__ inline void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
__device__ inline void cluster_sync() {
    cluster_arrive();
    cluster_wait();
}

struct alignas(64) TensorMap {
    u64 words[16];
};
#define tensor_load(to, map, barrier, x, y) \
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(to), \
    "l"(map), "r"(x), "r"(y), "r"(barrier) : "memory")
#define tensor_store(map, from, x, y) \
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map), "r"(from), "r"(x), \
    "r"(y) : "memory")
