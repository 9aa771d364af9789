// Stages of TF32 operands that tensor copies bring. The type of the tensor maps is TFLOAT32: the copy engine rounds
// float32 to the nearest TF32 on the way.
#pragma once

#include "cluster.cuh"
#include "tf32_stage.cuh"

// As many stages as fit into 192 KiB, and two barriers for each.
template <int BY, bool X_ALONG, class Blocks = OneBlock>
struct Tf32Ring {
    static constexpr int STAGES = 196608 / Tf32Stage<BY>::BYTES, CONSUMERS = 2;  // warpgroups

    struct Stage : Tf32Stage<BY> {
        unsigned number;
    };

    SharedAddress memory;
    unsigned step = 0;  // stages that this thread has brought, or waited for

    __device__ __forceinline__ explicit Tf32Ring(const char* shared) : memory(shared_address(shared)) {}

    // All threads of the block come here before the first use.
    __device__ __forceinline__ void open(const CUtensorMap& X, const CUtensorMap& Y) const
    {
        if (threadIdx.x == 0) {
            prefetch_map(X);
            prefetch_map(Y);
            make_barriers();
        }
        Blocks::meet();
    }

    // One thread: copies the next stage, 32 of k from `k` on, when its place is empty.
    template <class Tile>
    __device__ __forceinline__ void load(const Tile& tile, int k, const CUtensorMap& X, const CUtensorMap& Y)
    {
        const auto [stage, full] = ask();
        constexpr int X_PART = TF32_ROWS / Blocks::Y_BLOCKS, Y_PART = BY / Blocks::X_BLOCKS;  // of this block, for all
        const int x = Blocks::y() * X_PART, y = Blocks::x() * Y_PART;
        if constexpr (X_ALONG)
            Blocks::template copy<true>(stage.x + x * 128, X, k, tile.x + x, full);
        else
            for (int i = x; i < x + X_PART; i += 32)
                Blocks::template copy<true>(stage.x + i * 128, X, tile.x + i, k, full);
        Blocks::template copy<false>(stage.y() + y * 128, Y, k, tile.y + y, full);
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
        Blocks::arrive_everywhere(empty_barrier(stage.number));
    }

protected:
    __device__ __forceinline__ void make_barriers() const
    {
        for (int i = 0; i < STAGES; ++i) {
            init_barrier(full_barrier(i), 1);
            init_barrier(empty_barrier(i), CONSUMERS * Blocks::NEIGHBOURS);
        }
        publish_barriers();
    }

    // Where the next stage comes to, once that place is empty, and the barrier to report it to.
    struct Asked {
        Tf32Stage<BY> stage;
        SharedAddress full;
    };
    __device__ __forceinline__ Asked ask()
    {
        const unsigned place = step % STAGES;
        wait(empty_barrier(place), step / STAGES % 2 ^ 1);
        ++step;
        const Asked asked = {{stage_address(place)}, full_barrier(place)};
        arrive_and_expect(asked.full, asked.stage.BYTES);
        return asked;
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
