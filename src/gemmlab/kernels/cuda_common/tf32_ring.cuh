// Stages of TF32 operands that tensor copies bring, and the order of tiles. The type of the tensor maps is TFLOAT32:
// the copy engine rounds float32 to the nearest TF32 on the way.
#pragma once

#include "tensor_copy.cuh"
#include "tf32_stage.cuh"

// Tiles of X by Y, in strips of GROUP along X: tiles that are computed at the same time share rows of both in L2.
// A block goes on with the tile that lies `gridDim.x` further.
//
//     GROUP = 2           X ->
//                    0  1 |  6  7 | 12
//                    2  3 |  8  9 | 13
//                    4  5 | 10 11 | 14
template <int BY, int GROUP>
struct Tf32Tile {
    int x, y;  // first rows of X and Y

    __device__ __forceinline__ Tf32Tile(int rows_x, int rows_y)
        : across(ceil_div(rows_x, TF32_ROWS)), down(ceil_div(rows_y, BY)), index(blockIdx.x)
    {
        place();
    }

    __device__ __forceinline__ bool exists() const { return index < down * across; }

    __device__ __forceinline__ void advance()
    {
        index += gridDim.x;
        place();
    }

private:
    unsigned across, down;
    unsigned index;

    __device__ __forceinline__ void place()
    {
        const unsigned per_group = down * min(across, static_cast<unsigned>(GROUP));
        const unsigned group = index / per_group, in_group = index % per_group;
        const unsigned width = max(min(across - min(across, group * GROUP), static_cast<unsigned>(GROUP)), 1u);
        x = static_cast<int>(group * GROUP + in_group % width) * TF32_ROWS;
        y = static_cast<int>(in_group / width) * BY;
    }
};

// As many stages as fit into 192 KiB, and two barriers for each.
template <int BY, bool X_ALONG>
struct Tf32Ring {
    static constexpr int STAGES = 196608 / Tf32Stage<BY>::BYTES, CONSUMERS = 2;  // warpgroups

    struct Stage : Tf32Stage<BY> {
        unsigned number;
    };

    SharedAddress memory;
    unsigned step = 0;  // stages that this thread has brought, or waited for

    __device__ __forceinline__ explicit Tf32Ring(const char* shared) : memory(shared_address(shared)) {}

    // All threads of the block come here before the first use.
    __device__ __forceinline__ void open() const
    {
        if (threadIdx.x == 0) {
            for (int i = 0; i < STAGES; ++i) {
                init_barrier(full_barrier(i), 1);
                init_barrier(empty_barrier(i), CONSUMERS);
            }
            publish_barriers();
        }
        __syncthreads();
    }

    // One thread: copies the next stage, 32 of k from `k` on, when its place is empty.
    template <class Tile>
    __device__ __forceinline__ void load(const Tile& tile, int k, const CUtensorMap& X, const CUtensorMap& Y)
    {
        const unsigned place = step % STAGES;
        wait(empty_barrier(place), step / STAGES % 2 ^ 1);
        ++step;
        const Tf32Stage<BY> stage = {stage_address(place)};
        const SharedAddress full = full_barrier(place);
        arrive_and_expect(full, stage.BYTES);
        if constexpr (X_ALONG)
            copy_box(stage.x, X, k, tile.x, full);
        else
            for (int i = 0; i < TF32_ROWS; i += 32) copy_box(stage.x + i * 128, X, tile.x + i, k, full);
        copy_box(stage.y(), Y, k, tile.y, full);
    }

    // A consumer waits for the next stage.
    __device__ __forceinline__ Stage next()
    {
        const unsigned place = step % STAGES;
        wait(full_barrier(place), step / STAGES % 2);
        ++step;
        return {{stage_address(place)}, place};
    }

    // A warpgroup has read a stage.
    __device__ __forceinline__ void release(const Stage& stage) const
    {
        if (threadIdx.x % 128 == 0) arrive(empty_barrier(stage.number));
    }

private:
    __device__ __forceinline__ SharedAddress stage_address(unsigned place) const
    {
        return memory + place * Tf32Stage<BY>::BYTES;
    }
    __device__ __forceinline__ SharedAddress full_barrier(unsigned place) const
    {
        return memory + STAGES * Tf32Stage<BY>::BYTES + 8 * place;
    }
    __device__ __forceinline__ SharedAddress empty_barrier(unsigned place) const
    {
        return full_barrier(place) + 8 * STAGES;
    }
};
