// Accesses of the shared memory of another block of the cluster, one instruction each.
#pragma once
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
