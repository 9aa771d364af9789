// Operands cut into 16-bit parts (float_parts.cuh), stored as tensor cores want to read them.
//
// An operand is cut into strips of STRIP rows (rows of A, columns of B) and blocks of 128 along k. Each row of a block
// has its own scale, a power of two that brings its largest element to 2^TOP .. 2^(TOP + 1) of the parts; what is scaled is
// then cut into parts. In memory:
//
//     parts     [strip][64 of k][part][STRIP rows][64 halves]     rows of 128 bytes, 16-byte units swizzled (wgmma.cuh)
//     scales    [strip][128 of k][STRIP rows]                     what undoes the scale of a row
//
// Rows and columns that do not exist are zeros. What blocks find out about rows goes to the tickets (verdicts.cuh).
#pragma once

#include "float_parts.cuh"
#include "left_out.cuh"
#include "verdicts.cuh"

constexpr int SPLIT_DEPTH = 128;   // of k, that have one scale a row
constexpr int SPLIT_ROWS = 64;     // of the block that one block of threads splits
constexpr int SPLIT_THREADS = 128;

// Where the parts of an operand of `rows` x `depth` lie in a workspace.
template <class Format, int STRIP>
struct SplitOperand {
    static constexpr int PART_BYTES = STRIP * 128;
    static constexpr int STAGE_BYTES = Format::PARTS * PART_BYTES;  // all parts of 64 of k
    static constexpr int UNITS = STRIP / SPLIT_ROWS;                // pieces of a strip's block of k

    unsigned strips;
    unsigned blocks;  // of k
    char* parts;
    float* scales;
    Verdicts<STRIP> verdicts;

    // Moves `workspace` and `tickets` to behind the operand.
    __device__ __forceinline__ SplitOperand(int rows, int depth, char*& workspace, unsigned*& tickets)
        : strips(ceil_div(rows, STRIP)), blocks(ceil_div(depth, SPLIT_DEPTH)), parts(workspace),
          verdicts{strips, tickets}
    {
        const Offset cells = static_cast<Offset>(strips) * blocks;
        scales = reinterpret_cast<float*>(parts + cells * (2 * STAGE_BYTES));
        workspace = parts + (cells * (2 * STAGE_BYTES + 4 * STRIP) + 1023) / 1024 * 1024;
        tickets += verdicts.size();
    }

    // Blocks of threads that split it.
    __device__ __forceinline__ unsigned units() const { return strips * blocks * UNITS; }

    // The strip that a piece belongs to. Pieces are numbered in the order of memory: first along the rows if
    // contiguous elements belong to different rows (k goes `across`), else first along k.
    __device__ __forceinline__ unsigned strip_of(unsigned unit, bool across) const
    {
        return (across ? unit % (strips * UNITS) : unit / blocks) / UNITS;
    }

    __device__ __forceinline__ const char* stage(unsigned strip, unsigned block, unsigned half) const
    {
        return parts + (static_cast<Offset>(strip) * blocks * 2 + 2 * block + half) * STAGE_BYTES;
    }

    __device__ __forceinline__ const float* scales_of(unsigned strip, unsigned block) const
    {
        return scales + (static_cast<Offset>(strip) * blocks + block) * STRIP;
    }
};

// Both operands of a product, and what is known of them.
template <class Format, int BM, int BN>
struct SplitProduct {
    SplitOperand<Format, BM> a;
    SplitOperand<Format, BN> b;
    bool odd = true;     // odd lines decide for their tiles; else they are computed apart
    bool apart = false;  // there are odd lines, and they are computed apart

    __device__ __forceinline__ SplitProduct(int M, int N, int depth, void* workspace, unsigned* tickets)
        : SplitProduct(M, N, depth, static_cast<char*>(workspace), tickets + 1)
    {
    }

    // Pieces that are split, of A and B.
    __device__ __forceinline__ unsigned units() const { return a.units() + b.units(); }

    // Few odd lines are computed apart. All launches after the first come to the same conclusion.
    __device__ __forceinline__ void set_odd_lines_apart()
    {
        const unsigned of_a = a.verdicts.odd_lines(), of_b = b.verdicts.odd_lines();
        odd = max(of_a, of_b) > MOST_ODD;
        apart = !odd && of_a + of_b > 0;
    }

    // Verdicts on a tile's rows and columns, and on all.
    __device__ __forceinline__ unsigned verdict(unsigned a_strip, unsigned b_strip) const
    {
        return a.verdicts.of_strip(a_strip, odd) | b.verdicts.of_strip(b_strip, odd);
    }
    __device__ __forceinline__ unsigned all_verdicts() const { return a.verdicts.all(odd) | b.verdicts.all(odd); }

    // The lines of a tile that are computed apart.
    __device__ __forceinline__ LeftOut left_out(unsigned a_strip, unsigned b_strip) const
    {
        if (!apart || !(a.verdicts.has_odd(a_strip) || b.verdicts.has_odd(b_strip))) return {};
        return {a.verdicts.masks(a_strip), b.verdicts.masks(b_strip)};
    }

    // Tickets that the verdicts take.
    __device__ __forceinline__ unsigned tickets() const { return 1 + a.verdicts.size() + b.verdicts.size(); }

    // All threads of all blocks of the last launch call this once they need neither verdicts nor the `more` tickets
    // behind them.
    __device__ __forceinline__ void forget_verdicts(
        unsigned* tickets, unsigned more = 0, unsigned thread = threadIdx.x) const
    {
        if (take_last_ticket(tickets, gridDim.x, thread))
            for (unsigned i = threadIdx.x; i < this->tickets() + more; i += blockDim.x) tickets[i] = 0;
    }

    // The same by one warp of each block, after a barrier behind which no thread needs verdicts.
    __device__ __forceinline__ void forget_verdicts_as_warp(unsigned* tickets, unsigned more = 0) const
    {
        if (take_last_ticket_as_warp(tickets, gridDim.x))
            for (unsigned i = threadIdx.x % 32; i < this->tickets() + more; i += 32) tickets[i] = 0;
    }

private:
    __device__ __forceinline__ SplitProduct(int M, int N, int depth, char* free, unsigned* tickets)
        : a(M, depth, free, tickets), b(N, depth, free, tickets)
    {
    }
};
