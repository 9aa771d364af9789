// Copies of boxes of tensors into shared memory (sm_90).
#pragma once

#include <cuda.h>  // CUtensorMap

#include "mbarrier.cuh"

// Brings a map itself into the cache that the copy engine reads it from.
__device__ __forceinline__ void prefetch_map(const CUtensorMap& map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// A box of a matrix, from `column` and `row` on (elements; zeros where there are none). `map` is a kernel's argument.
__device__ __forceinline__ void copy_box(
    SharedAddress to, const CUtensorMap& map, int column, int row, SharedAddress barrier)
{
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(
            to),
        "l"(&map), "r"(barrier), "r"(column), "r"(row)
        : "memory");
}

// The same for all blocks of the cluster in `blocks` (a bit each): to the same place, reported to the same barrier.
__device__ __forceinline__ void copy_box_to(
    unsigned short blocks, SharedAddress to, const CUtensorMap& map, int column, int row, SharedAddress barrier)
{
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
        "[%1, {%3, %4}], [%2], %5;" ::"r"(to),
        "l"(&map), "r"(barrier), "r"(column), "r"(row), "h"(blocks)
        : "memory");
}

// Arrives at the barrier at the same place in another block of the cluster, after reads: stores before it need not be
// seen there. (`release.cluster`, for stores, is a MEMBAR.ALL.GPU: in every stage it costs a third of the rate.)
__device__ __forceinline__ void arrive_in(unsigned block, SharedAddress barrier)
{
    asm volatile(
        "{\n"
        ".reg .b32 there;\n"
        "mapa.shared::cluster.u32 there, %0, %1;\n"
        "mbarrier.arrive.shared::cluster.b64 _, [there];\n"
        "}" ::"r"(barrier),
        "r"(block)
        : "memory");
}

// All threads of all blocks of the cluster.
__device__ __forceinline__ void cluster_barrier()
{
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}
