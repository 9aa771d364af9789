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
