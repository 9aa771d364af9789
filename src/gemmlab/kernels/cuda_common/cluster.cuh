// Clusters of blocks that share copies: a box that several blocks need is read from L2 once, and lands in all of them.
#pragma once

#include "tensor_copy.cuh"

// A block on its own.
struct OneBlock {
    static constexpr int X_BLOCKS = 1, Y_BLOCKS = 1, BLOCKS = 1, NEIGHBOURS = 1;

    static __device__ __forceinline__ int x() { return 0; }
    static __device__ __forceinline__ int y() { return 0; }
    static __device__ __forceinline__ void meet() { __syncthreads(); }
    static __device__ __forceinline__ void leave() {}
    static __device__ __forceinline__ void arrive_everywhere(SharedAddress barrier)
    {
        if (threadIdx.x % 128 == 0) arrive(barrier);
    }
    template <bool SHARE_X>
    static __device__ __forceinline__ void copy(
        SharedAddress to, const CUtensorMap& map, int column, int row, SharedAddress barrier)
    {
        copy_box(to, map, column, row, barrier);
    }
};

// X x Y adjacent blocks. Those that differ in x alone share the operand Y, those that differ in y alone the operand X.
// Each copies its part of a shared operand to all blocks that share it.
//
//     2 x 1:    block 0: rows 0 .. 127 of X       both: first half of Y, by block 0
//               block 1: rows 128 .. 255                second half, by block 1
template <int X, int Y>
struct Cluster {
    static constexpr int X_BLOCKS = X, Y_BLOCKS = Y, BLOCKS = X * Y;
    static constexpr int NEIGHBOURS = X + Y - 1;  // that share X or Y with the block, itself too

    static __device__ __forceinline__ int x() { return blockIdx.x % X; }
    static __device__ __forceinline__ int y() { return blockIdx.x % BLOCKS / X; }

    // All threads of all blocks call this before the first copy, and before they end: others may still write to them.
    static __device__ __forceinline__ void meet() { cluster_barrier(); }
    static __device__ __forceinline__ void leave() { cluster_barrier(); }

    // Reports, at this barrier of each block that shares X or Y, that the warpgroup has read a stage.
    static __device__ __forceinline__ void arrive_everywhere(SharedAddress barrier)
    {
        const int number = threadIdx.x % 128;
        if (number < NEIGHBOURS) arrive_in(neighbour(number), barrier);
    }

    // A box for all blocks that share this one's X (SHARE_X) or Y.
    template <bool SHARE_X>
    static __device__ __forceinline__ void copy(
        SharedAddress to, const CUtensorMap& map, int column, int row, SharedAddress barrier)
    {
        if constexpr ((SHARE_X ? Y : X) == 1)
            copy_box(to, map, column, row, barrier);
        else
            copy_box_to(SHARE_X ? sharing_x() : sharing_y(), to, map, column, row, barrier);
    }

private:
    // Masks of blocks: bit i is block i of the cluster.
    static __device__ __forceinline__ unsigned short sharing_y()
    {
        return static_cast<unsigned short>((1u << X) - 1 << X * y());
    }
    static __device__ __forceinline__ unsigned short sharing_x()
    {
        unsigned blocks = 0;
        for (int i = 0; i < Y; ++i) blocks |= 1u << (x() + X * i);
        return static_cast<unsigned short>(blocks);
    }

    static __device__ __forceinline__ unsigned neighbour(int number)
    {
        if (number < X) return number + X * y();
        const int other = number - X;
        return x() + X * (other + (other >= y()));
    }
};
