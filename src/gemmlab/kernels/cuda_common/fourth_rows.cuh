// Stages of TF32 operands whose rows lie off 16 bytes, by tensor copies.
//
// A tensor map needs rows that are a multiple of 16 bytes apart. Rows r, r + 4, r + 8, ... of any float32 matrix are:
// 16 ld bytes. So four maps describe a matrix, one for each class r = row % 4. A map also needs a base on 16 bytes, so
// the map of class r begins shift(r) = 0 .. 3 words before the first row of its class:
//
//     column c of the matrix is column c + shift(r) of the map; columns before it belong to the row before.
//
// These words belong to the row before, and the operand begins on 16 bytes, so no copy reads before it. Copies begin
// at columns of the map that are multiples of 4, the only ones that the copy engine takes. Y has k along its rows, and
// a tile of Y has rows of one class. So all of its rows have one shift s, and its stage q has
//
//     k = 32 q - s .. 32 q - s + 31.
//
// X has k across, so the same steps of k are rows of all four classes. Step 32 q - s + i is row i / 4 of slot i % 4,
// brought by the map of class (i - s) % 4. A lane reads steps of one slot, so its shift along X is always the same.
//
//     X   [slot 4][step / 4: 8][132 words: 128 and the shift]         Y   [BY rows][32 of k], swizzled (wgmma.cuh)
#pragma once

#include "cluster.cuh"
#include "epilogue.cuh"
#include "tf32_stage.cuh"

constexpr int CLASSES = 4;           // of rows
constexpr int STAGED_STEPS = 8;      // of k in a slot of X
constexpr int X_PITCH = TF32_ROWS + 4;  // words

// The tensor maps of a matrix, by class.
struct FourMaps {
    CUtensorMap of[CLASSES];
};

// How far the rows of each class lie off 16 bytes, in words. The matrix begins on 16 bytes.
struct RowShifts {
    unsigned pitch;

    __device__ __forceinline__ explicit RowShifts(int ld) : pitch(ld) {}
    __device__ __forceinline__ int of(int row_class) const { return row_class * pitch % 4; }
};

// The rows of a class among `rows` of a matrix.
__device__ __forceinline__ int rows_of_class(int rows, int row_class)
{
    return static_cast<int>((static_cast<unsigned>(rows) + 3 - row_class) / CLASSES);
}

// A tile of Y's rows of one class: row i of the tile is row CLASSES * (first + i) + row_class of Y. Blocks of a cluster
// that share X have tiles of one class, because the class decides which steps of k a stage has.
template <int BY, int GROUP, class Blocks>
struct ClassTile {
    int x, first, row_class;

    __device__ __forceinline__ ClassTile(int rows_x, int rows_y)
        : tiles(rows_x, ceil_div(ceil_div(rows_y, CLASSES), BY * Blocks::Y_BLOCKS) * CLASSES * BY * Blocks::Y_BLOCKS)
    {
        place();
    }
    __device__ __forceinline__ bool exists() const { return tiles.exists(); }
    __device__ __forceinline__ void advance()
    {
        tiles.advance();
        place();
    }

private:
    TileOfXY<BY, GROUP, Blocks> tiles;

    __device__ __forceinline__ void place()
    {
        const unsigned number = static_cast<unsigned>(tiles.y) / (BY * Blocks::Y_BLOCKS);
        x = tiles.x;
        first = static_cast<int>((number / CLASSES * Blocks::Y_BLOCKS + Blocks::y()) * BY);
        row_class = static_cast<int>(number % CLASSES);
    }
};

// The ring of stages; mbarrier.cuh has the protocol.
template <int BY, class Blocks>
struct ClassRing {
    static constexpr int SLOT_BYTES = STAGED_STEPS * X_PITCH * 4, X_BYTES = CLASSES * SLOT_BYTES, Y_BYTES = BY * 128;
    static constexpr int BYTES = Y_BYTES + (X_BYTES + 1023) / 1024 * 1024, STAGES = 208896 / BYTES, CONSUMERS = 2;
    static constexpr int NBYTES = STAGES * (BYTES + 16);

    struct Stage {
        SharedAddress y;  // first, since its swizzle needs a multiple of 1024
        unsigned number;

        __device__ __forceinline__ SharedAddress x() const { return y + Y_BYTES; }
    };

    SharedAddress memory;
    unsigned step = 0;  // stages that this thread has brought, or waited for

    __device__ __forceinline__ explicit ClassRing(const char* shared) : memory(shared_address(shared)) {}

    // All threads of the block come here before the first use.
    __device__ __forceinline__ void open() const
    {
        if (threadIdx.x == 0) {
            for (int i = 0; i < STAGES; ++i) {
                init_barrier(full_barrier(i), 1);
                init_barrier(empty_barrier(i), CONSUMERS * Blocks::NEIGHBOURS);
            }
            publish_barriers();
        }
        Blocks::meet();
    }

    // One thread: copies stage `number` of a tile when its place is empty. X has `steps` rows.
    template <class Tile>
    __device__ __forceinline__ void load(
        const Tile& tile, int number, int shift, const FourMaps& X, int steps, const FourMaps& Y)
    {
        const unsigned place = step % STAGES;
        wait(empty_barrier(place), step / STAGES % 2 ^ 1);
        ++step;
        const SharedAddress full = full_barrier(place), y = memory + place * BYTES;
        arrive_and_expect(full, X_BYTES + Y_BYTES);
        constexpr int Y_PART = BY / Blocks::X_BLOCKS, SLOTS = CLASSES / Blocks::Y_BLOCKS;  // of this block, for all
        const int part = Blocks::x() * Y_PART;
        const CUtensorMap& rows = Y.of[tile.row_class];
        Blocks::template copy<false>(y + part * 128, rows, number * TF32_DEPTH, tile.first + part, full);
#pragma unroll
        for (int i = 0; i < SLOTS; ++i) {
            const int slot = Blocks::y() * SLOTS + i, row_class = (slot - shift) & 3;
            // The map of a class without rows lies over row 0; outside of it are zeros.
            const int row = row_class < steps ? number * STAGED_STEPS - (slot < shift) : -STAGED_STEPS;
            Blocks::template copy<true>(y + Y_BYTES + slot * SLOT_BYTES, X.of[row_class], tile.x, row, full);
        }
    }

    // A consumer waits for the next stage.
    __device__ __forceinline__ Stage next()
    {
        const unsigned place = step % STAGES;
        wait(full_barrier(place), step / STAGES % 2);
        ++step;
        return {memory + place * BYTES, place};
    }

    // A warpgroup has read a stage.
    __device__ __forceinline__ void release(const Stage& stage) const
    {
        Blocks::arrive_everywhere(empty_barrier(stage.number));
    }

private:
    __device__ __forceinline__ SharedAddress full_barrier(unsigned place) const
    {
        return memory + STAGES * BYTES + 8 * place;
    }
    __device__ __forceinline__ SharedAddress empty_barrier(unsigned place) const
    {
        return full_barrier(place) + 8 * STAGES;
    }
};
