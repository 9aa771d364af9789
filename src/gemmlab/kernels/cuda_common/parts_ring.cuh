// Stages of split operands (split_operands.cuh) on their way from global memory to the tensor cores of a block, and the
// tiles that a block computes one after the other.
#pragma once

#include "split_operands.cuh"
#include "staged_rows.cuh"
#include "wgmma.cuh"

// The tiles of C that one block computes. As many blocks run as fit, and each goes on from tile t to tile
// t + gridDim.x. Tiles follow each other in strips of GROUP columns (block_order.cuh, GROUPED).
template <int BM, int BN, int GROUP>
struct PartsTile {
    unsigned a_strip, b_strip;
    int row, col;    // first row and column
    int rows, cols;  // of C from there on

    __device__ __forceinline__ PartsTile(int M, int N)
        : down(ceil_div(M, BM)), across(ceil_div(N, BN)), index(blockIdx.x), extent_m(M), extent_n(N)
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
    unsigned down, across;  // tiles of C
    unsigned index;
    int extent_m, extent_n;

    __device__ __forceinline__ void place()
    {
        const unsigned per_group = down * min(across, static_cast<unsigned>(GROUP));
        const unsigned group = index / per_group, in_group = index % per_group;
        const unsigned width = min(across - min(across, group * GROUP), static_cast<unsigned>(GROUP));
        a_strip = in_group / max(width, 1u);  // the width is 0 behind the last tile
        b_strip = group * GROUP + in_group % max(width, 1u);
        row = static_cast<int>(a_strip) * BM;
        col = static_cast<int>(b_strip) * BN;
        rows = extent_m - row;
        cols = extent_n - col;
    }
};

// STAGES stages in shared memory. A stage has 64 of k: all parts of the rows of A, then all parts of the columns of B.
// The scales of a block of 128 of k come with its first half and lie apart, since they are needed after its stages.
template <class Format, int BM, int BN, int STAGES>
struct PartsRing {
    using AParts = SplitOperand<Format, BM>;
    using BParts = SplitOperand<Format, BN>;
    using Product = SplitProduct<Format, BM, BN>;
    static constexpr int CONSUMERS = 2;  // warpgroups
    static constexpr int STAGE_BYTES = AParts::STAGE_BYTES + BParts::STAGE_BYTES;
    // The scales of the block that is copied, of the one that is multiplied, and of the one that joins the sums.
    static constexpr int SCALES = 4;

    struct Stage {
        SharedAddress a, b;      // first part of each operand
        const float* a_scales;   // of BM rows, valid until the block of k after the next one is done
        const float* b_scales;
        unsigned number;
    };

    Product parts;
    char* shared;
    unsigned step = 0;  // stages that this thread has waited for

    __device__ __forceinline__ PartsRing(char* memory, const Product& product) : parts(product), shared(memory) {}

    // All threads of the block come here before the first use.
    __device__ __forceinline__ void open()
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

    // The producer: copies all stages of a tile, each as soon as its place is empty. Called by one warp.
    template <class Tile>
    __device__ __forceinline__ void load(const Tile& tile)
    {
#pragma unroll 1  // the producer has few registers
        for (unsigned block = 0; block < parts.a.blocks; ++block)
#pragma unroll 1
            for (unsigned half = 0; half < 2; ++half, ++step) {
                const unsigned place = step % STAGES;
                wait(empty_barrier(place), step / STAGES % 2 ^ 1);
                if (threadIdx.x % 32 == 0) {
                    const SharedAddress full = full_barrier(place), to = stage_address(place);
                    arrive_and_expect(full, STAGE_BYTES + (half == 0 ? SCALE_BYTES : 0));
                    copy_bulk(to, parts.a.stage(tile.a_strip, block, half), AParts::STAGE_BYTES, full);
                    copy_bulk(
                        to + AParts::STAGE_BYTES, parts.b.stage(tile.b_strip, block, half), BParts::STAGE_BYTES, full);
                    if (half == 0) {
                        const SharedAddress scales = shared_address(scales_at(step / 2 % SCALES));
                        copy_bulk(scales, parts.a.scales_of(tile.a_strip, block), 4 * BM, full);
                        copy_bulk(scales + 4 * BM, parts.b.scales_of(tile.b_strip, block), 4 * BN, full);
                    }
                }
                __syncwarp();
            }
    }

    // A consumer waits for the next stage.
    __device__ __forceinline__ Stage next()
    {
        const unsigned place = step % STAGES;
        wait(full_barrier(place), step / STAGES % 2);
        const float* const scales = scales_at(step / 2 % SCALES);
        const SharedAddress a = stage_address(place);
        ++step;
        return {a, a + AParts::STAGE_BYTES, scales, scales + BM, place};
    }

    // A warpgroup has read a stage.
    __device__ __forceinline__ void release(const Stage& stage)
    {
        if (threadIdx.x % 128 == 0) arrive(empty_barrier(stage.number));
    }

    // Memory that stages do not use, for results on their way to C and for tiles that are computed exactly.
    __device__ __forceinline__ float* spare() const
    {
        return reinterpret_cast<float*>(shared + STAGES * STAGE_BYTES + SCALES * SCALE_BYTES + BARRIER_BYTES);
    }

private:
    static constexpr int SCALE_BYTES = 4 * (BM + BN), BARRIER_BYTES = 128;
    static_assert(2 * 8 * STAGES <= BARRIER_BYTES, "barriers have a place");

    __device__ __forceinline__ SharedAddress stage_address(unsigned place) const
    {
        return shared_address(shared) + place * STAGE_BYTES;
    }
    __device__ __forceinline__ float* scales_at(unsigned place) const
    {
        return reinterpret_cast<float*>(shared + STAGES * STAGE_BYTES + place * SCALE_BYTES);
    }
    __device__ __forceinline__ SharedAddress full_barrier(unsigned place) const
    {
        return shared_address(shared) + STAGES * STAGE_BYTES + SCALES * SCALE_BYTES + 8 * place;
    }
    __device__ __forceinline__ SharedAddress empty_barrier(unsigned place) const
    {
        return full_barrier(place) + 8 * STAGES;
    }
};
