// Stages of float32 operands on their way to the tensor cores of a block, as TF32: the tensor maps' type rounds to
// nearest while it copies. And the tiles that a block computes one after the other.
//
// wgmma reads TF32 from shared memory along k only. What is stored across k therefore goes in as the register operand,
// X; the other one, Y, lies in shared memory. Sums are X's rows by Y's rows:
//
//     layout     X                     Y                     sums are
//     nn         B, [k][n], across     A, [m][k]             C's transpose
//     nt         B, [n][k], along      A, [m][k]             C's transpose
//     tt         A, [k][m], across     B, [n][k]             C
//
// Shared memory of a stage, 32 of k (128 bytes, swizzled as wgmma.cuh says):
//
//     X across   [128 rows / 32][32 of k][32 rows]       X along    [128 rows][32 of k]
//     Y          [BY rows][32 of k]
#pragma once

#include "epilogue.cuh"
#include "tensor_copy.cuh"
#include "wgmma.cuh"

constexpr int TF32_DEPTH = 32;  // of k in a stage
constexpr int TF32_ROWS = 128;  // of X in a tile: 64 of each consumer warpgroup

// Blocks of a cluster are X_BLOCKS neighbours along X by Y_BLOCKS along Y by K_BLOCKS parts of k. Those that differ in x
// alone share Y, those in y alone X: each copies its part of what is shared to all of them.
template <int X_BLOCKS, int Y_BLOCKS, int K_BLOCKS>
struct Tf32Cluster {
    static constexpr int LAYER = X_BLOCKS * Y_BLOCKS, BLOCKS = LAYER * K_BLOCKS;
    static constexpr int NEIGHBOURS = X_BLOCKS + Y_BLOCKS - 1;  // that share X or Y with the block, itself too

    static __device__ __forceinline__ int x() { return blockIdx.x % X_BLOCKS; }
    static __device__ __forceinline__ int y() { return blockIdx.x % LAYER / X_BLOCKS; }
    static __device__ __forceinline__ int k() { return blockIdx.x % BLOCKS / LAYER; }
    static __device__ __forceinline__ unsigned block(int x, int y, int k) { return x + X_BLOCKS * y + LAYER * k; }

    // Bits of the blocks that share Y with this one, and X.
    static __device__ __forceinline__ unsigned short sharing_y()
    {
        return static_cast<unsigned short>((1u << X_BLOCKS) - 1 << block(0, y(), k()));
    }
    static __device__ __forceinline__ unsigned short sharing_x()
    {
        unsigned blocks = 0;
        for (int i = 0; i < Y_BLOCKS; ++i) blocks |= 1u << block(x(), i, k());
        return static_cast<unsigned short>(blocks);
    }

    static __device__ __forceinline__ unsigned neighbour(int number)
    {
        if (number < X_BLOCKS) return block(number, y(), k());
        const int other = number - X_BLOCKS;
        return block(x(), other + (other >= y()), k());
    }
};

// The tiles of one cluster of blocks, all neighbours. As many clusters run as fit, and each goes on with the tiles that
// lie as many further as there are clusters. They follow each other in strips of GROUP along X.
template <int BY, int GROUP, int X_BLOCKS, int Y_BLOCKS, class Cluster>
struct Tf32Tile {
    int x, y;  // first rows of X and Y

    __device__ __forceinline__ Tf32Tile(int rows_x, int rows_y)
        : across(ceil_div(rows_x, TF32_ROWS * X_BLOCKS)), down(ceil_div(rows_y, BY * Y_BLOCKS)),
          index(blockIdx.x / Cluster::BLOCKS)
    {
        place();
    }

    __device__ __forceinline__ bool exists() const { return index < down * across; }

    __device__ __forceinline__ void advance()
    {
        index += gridDim.x / Cluster::BLOCKS;
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
        x = static_cast<int>((group * GROUP + in_group % width) * X_BLOCKS + Cluster::x()) * TF32_ROWS;
        y = static_cast<int>(in_group / width * Y_BLOCKS + Cluster::y()) * BY;
    }
};

template <int BY, int STAGES, bool X_ALONG, int X_BLOCKS, int Y_BLOCKS, int K_BLOCKS>
struct Tf32Ring {
    using Cluster = Tf32Cluster<X_BLOCKS, Y_BLOCKS, K_BLOCKS>;
    static constexpr int CONSUMERS = 2;  // warpgroups of a block
    static constexpr int X_BYTES = TF32_ROWS * 128, Y_BYTES = BY * 128, STAGE_BYTES = X_BYTES + Y_BYTES;

    struct Stage {
        SharedAddress x, y;
        unsigned number;
    };

    SharedAddress memory;
    unsigned step = 0;  // stages that this thread has waited for

    __device__ __forceinline__ explicit Tf32Ring(const char* shared) : memory(shared_address(shared)) {}

    // All threads of the block come here before the first use.
    __device__ __forceinline__ void open()
    {
        if (threadIdx.x == 0) {
            for (int i = 0; i < STAGES; ++i) {
                init_barrier(full_barrier(i), 1);
                init_barrier(empty_barrier(i), CONSUMERS * Cluster::NEIGHBOURS);
            }
            publish_barriers();
        }
        if constexpr (Cluster::BLOCKS > 1)
            cluster_barrier();
        else
            __syncthreads();
    }

    // All threads of the block come here last: memory may not go while another block of the cluster copies to it.
    __device__ __forceinline__ void close()
    {
        if constexpr (Cluster::BLOCKS > 1) cluster_barrier();
    }

    // The producer, one thread: copies all `stages` of its part of k of a tile, each as soon as its place is empty.
    template <class Tile>
    __device__ __forceinline__ void load(const Tile& tile, int stages, const CUtensorMap& X, const CUtensorMap& Y)
    {
        constexpr int X_PART = TF32_ROWS / Y_BLOCKS, Y_PART = BY / X_BLOCKS;  // rows that this block copies
        const int first_x = Cluster::y() * X_PART, first_y = Cluster::x() * Y_PART;
#pragma unroll 1  // the producer has few registers
        for (int stage = 0; stage < stages; ++stage, ++step) {
            const int k = (Cluster::k() * stages + stage) * TF32_DEPTH;
            const unsigned place = step % STAGES;
            wait(empty_barrier(place), step / STAGES % 2 ^ 1);
            const SharedAddress full = full_barrier(place), x = stage_address(place), y = x + X_BYTES;
            arrive_and_expect(full, STAGE_BYTES);
            if constexpr (X_ALONG)
                copy<Y_BLOCKS>(Cluster::sharing_x(), x + first_x * 128, X, k, tile.x + first_x, full);
            else
                for (int i = first_x; i < first_x + X_PART; i += 32)
                    copy<Y_BLOCKS>(Cluster::sharing_x(), x + i * 128, X, tile.x + i, k, full);
            copy<X_BLOCKS>(Cluster::sharing_y(), y + first_y * 128, Y, k, tile.y + first_y, full);
        }
    }

    // A consumer waits for the next stage.
    __device__ __forceinline__ Stage next()
    {
        const unsigned place = step % STAGES;
        wait(full_barrier(place), step / STAGES % 2);
        ++step;
        return {stage_address(place), stage_address(place) + X_BYTES, place};
    }

    // A warpgroup has read a stage.
    __device__ __forceinline__ void release(const Stage& stage)
    {
        const int thread = threadIdx.x % 128;
        if constexpr (Cluster::BLOCKS == 1) {
            if (thread == 0) arrive(empty_barrier(stage.number));
        } else {
            if (thread < Cluster::NEIGHBOURS) arrive_in(Cluster::neighbour(thread), empty_barrier(stage.number));
        }
    }

    // The first address that stages and barriers do not use.
    __device__ __forceinline__ SharedAddress spare() const { return memory + STAGES * (STAGE_BYTES + 16); }

private:
    template <int SHARERS>
    static __device__ __forceinline__ void copy(
        unsigned short blocks, SharedAddress to, const CUtensorMap& map, int column, int row, SharedAddress barrier)
    {
        if constexpr (SHARERS == 1)
            copy_box(to, map, column, row, barrier);
        else
            copy_box_to(blocks, to, map, column, row, barrier);
    }
    __device__ __forceinline__ SharedAddress stage_address(unsigned place) const { return memory + place * STAGE_BYTES; }
    __device__ __forceinline__ SharedAddress full_barrier(unsigned place) const
    {
        return memory + STAGES * STAGE_BYTES + 8 * place;
    }
    __device__ __forceinline__ SharedAddress empty_barrier(unsigned place) const
    {
        return full_barrier(place) + 8 * STAGES;
    }
};

// A thread's part of X as the register operand of wgmma, and the place of its sums. Lane l reads two neighbouring rows,
// pair + 0 and 1, at k = l % 4 and l % 4 + 4 of each eight.
//
// X across: a row of 128 bytes is 32 rows of X at one k. The pairs of 16 lanes lie in units u, u ^ 4 (l / 8 decides)
// and their halves, so that the swizzled units u ^ k, u ^ 4 ^ k at four k are eight different ones: no conflicts.
//
// X along: lanes read row 2 (l / 4) first, or its neighbour from l / 4 = 4 on, so that the eight rows differ modulo 8.
template <bool X_ALONG>
struct Tf32Operand {
    static constexpr int FRAGMENTS = TF32_DEPTH / 8;

    int pair;   // first of the thread's two rows in the tile
    int first;  // 1 if the sums' first row is the second of the pair
    int column;  // of the first sum among rows of Y

    __device__ __forceinline__ Tf32Operand() : column(threadIdx.x % 4 * 2)
    {
        const int group = threadIdx.x / 128 - 1, warp = threadIdx.x % 128 / 32, of_eight = threadIdx.x % 32 / 4;
        if constexpr (X_ALONG) {
            pair = group * 64 + warp * 16 + of_eight * 2;
            first = of_eight / 4;
        } else {
            const int unit = warp % 2 * 2 + of_eight / 4 + of_eight / 2 % 2 * 4;
            pair = group * 64 + warp / 2 * 32 + unit * 4 + of_eight % 2 * 2;
            first = 0;
        }
    }

    __device__ __forceinline__ void load(unsigned (&x)[FRAGMENTS][4], SharedAddress stage) const
    {
        const int k = threadIdx.x % 4;
        if constexpr (X_ALONG) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const int row = pair + (first ^ i);
                const SharedAddress at = stage + row * 128 + k * 4;
#pragma unroll
                for (int unit = 0; unit < 8; ++unit) {
                    unsigned& to = x[unit / 2][unit % 2 * 2 + i];
                    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(to) : "r"(at + ((unit ^ row % 8) << 4)));
                }
            }
        } else {
            const SharedAddress low = stage + pair / 32 * 4096 + k * 128 + ((pair % 32 / 4 ^ k) << 4) + pair % 4 * 4;
            const SharedAddress high = (low ^ 64) + 512;  // four of k further
#pragma unroll
            for (int i = 0; i < FRAGMENTS; ++i) {
                asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(x[i][0]), "=r"(x[i][1]) : "r"(low + i * 1024));
                asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(x[i][2]), "=r"(x[i][3]) : "r"(high + i * 1024));
            }
        }
    }
};

// Sums of two blocks of a cluster that computed the same tile from different parts of k. Each finishes one half of a
// thread's sums and gives the other half to the thread of the same number in the other block.
template <int COUNT>
struct Tf32Halves {
    static constexpr int THREADS = 256, BYTES = COUNT / 2 * THREADS * 4 + 16;

    SharedAddress memory;
    unsigned other;  // block of the cluster
    unsigned round = 0;

    __device__ __forceinline__ Tf32Halves(SharedAddress place, unsigned other_block) : memory(place), other(other_block) {}

    // One thread, before the cluster's first barrier.
    __device__ __forceinline__ void open() const
    {
        init_barrier(given(), THREADS);
        init_barrier(taken(), THREADS);
    }

    // Afterwards sums[0 .. COUNT / 2) is complete, in the first block, or sums[COUNT / 2 .. COUNT), in the second.
    __device__ __forceinline__ void add(float (&sums)[COUNT], bool second)
    {
        const SharedAddress mine = memory + (threadIdx.x - 128) * 4, there = address_in(other, mine);
        wait(taken(), round % 2 ^ 1);
#pragma unroll
        for (int i = 0; i < COUNT / 2; ++i)
            store_in_cluster(there + i * THREADS * 4, second ? sums[i] : sums[i + COUNT / 2]);
        arrive_in(other, given());
        wait_for_cluster(given(), round % 2);
#pragma unroll
        for (int i = 0; i < COUNT / 2; ++i) {
            float more;
            asm volatile("ld.shared.f32 %0, [%1];" : "=f"(more) : "r"(mine + i * THREADS * 4) : "memory");
            if (second)
                sums[i + COUNT / 2] += more;
            else
                sums[i] += more;
        }
        arrive_in(other, taken());
        ++round;
    }

private:
    __device__ __forceinline__ SharedAddress given() const { return memory + COUNT / 2 * THREADS * 4; }
    __device__ __forceinline__ SharedAddress taken() const { return given() + 8; }
};

// C = alpha * sums + beta * C for the part of a tile that exists. `c` is its first element; C_BY_X says that the rows
// of X are rows of C. `rows` and `cols` of C exist from there on; a whole tile has ROWS x COLS. Of a thread's sums those
// from FIRST to LAST are stored.
template <bool C_BY_X, int ROWS, int COLS, int FIRST, int LAST, int COUNT, class Operand>
__device__ __forceinline__ void store_sums(
    float* c, int ldc, int rows, int cols, const Operand& place, float alpha, const float (&sums)[COUNT], float beta)
{
    // Calls `store` for two neighbours in a row of C.
    const auto each_pair = [&](auto store) {
#pragma unroll
        for (int i = FIRST; i < LAST; i += 4)
#pragma unroll
            for (int other = 0; other < 2; ++other)
                if constexpr (C_BY_X) {
                    store(place.pair + (place.first ^ other), i * 2 + place.column, sums[i + 2 * other], sums[i + 2 * other + 1]);
                } else {
                    const float one = sums[i + other], two = sums[i + other + 2];
                    store(i * 2 + place.column + other, place.pair, place.first ? two : one, place.first ? one : two);
                }
    };
    const bool pairs = reinterpret_cast<unsigned long long>(c) % 8 == 0 && ldc % 2 == 0;
    if (beta == 0.0f && pairs && rows >= ROWS && cols >= COLS)
        each_pair([&](int row, int col, float one, float two) {
            *reinterpret_cast<float2*>(c + row * static_cast<Offset>(ldc) + col) = make_float2(alpha * one, alpha * two);
        });
    else
        each_pair([&](int row, int col, float one, float two) {
            float* const at = c + row * static_cast<Offset>(ldc) + col;
            if (row < rows && col < cols) store_element(at, alpha, one, beta);
            if (row < rows && col + 1 < cols) store_element(at + 1, alpha, two, beta);
        });
}
