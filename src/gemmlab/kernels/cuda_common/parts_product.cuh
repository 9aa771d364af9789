// The launches of a product of split operands, around the loop that a rung is about.
//
// K is cut into slices of SLICE, so that the workspace stays small. Each slice takes two launches: one splits, the other
// multiplies and adds to C what it gets.
#pragma once

#include "exact_tile.cuh"
#include "parts_ring.cuh"
#include "split_floats.cuh"

constexpr int PARTS_THREADS = 384;  // a producer's warpgroup and two consumers'

// One slice of alpha * A B + beta * C.
struct PartsSlice {
    int M, N, depth;
    float alpha;
    const float* A;
    int lda;
    const float* B;
    int ldb;
    float beta;
    float* C;
    int ldc;

    template <bool TRANS_A, bool TRANS_B>
    static __device__ __forceinline__ PartsSlice of(
        int slice, int length, int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb,
        float beta, float* C, int ldc)
    {
        const int sum = sum_depth(K, alpha);
        const int first = min(static_cast<long long>(slice) * length, static_cast<long long>(sum));
        A += TRANS_A ? first * static_cast<Offset>(lda) : first;
        B += TRANS_B ? first : first * static_cast<Offset>(ldb);
        // Later slices add to what the first one stored. Without a product they have nothing to add.
        return {M, N, min(sum - first, length), alpha, A, lda, B, ldb, slice ? 1.0f : beta, C, ldc};
    }
};

// A launch begins while the one before it ends. Lets the next one begin, and waits for what the one before has stored.
__device__ __forceinline__ void follow_launch()
{
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    asm volatile("griddepcontrol.wait;" ::: "memory");
}

// A number that all lanes have, of which the compiler knows nothing: as a predicate it would be spilled.
__device__ __forceinline__ unsigned as_number(unsigned number) { return __shfl_sync(0xffffffff, number, 0); }

// How a tile is computed in this launch.
enum class Way { SKIP, PARTS, EXACT };

// A consumer's tile: by parts as the ring brings them, exactly, or not in this launch. `multiply(sums, ring, place, blocks)`
// adds the products of all blocks of k.
template <bool TRANS_A, bool TRANS_B, int BM, int BN, class Product, class Ring, class Tile, class Multiply>
__device__ __forceinline__ void consume_tile(
    const Product& parts, const PartsSlice& it, Ring& ring, PartsPlace place, const Tile& tile, Way how,
    const Multiply& multiply)
{
    const LeftOut left_out = parts.left_out(tile.a_strip, tile.b_strip);
    const auto apart = [&](int row, int col) { return parts.a.verdicts.is_odd(row) || parts.b.verdicts.is_odd(col); };
    const auto c = [&] { return it.C + tile.row * static_cast<Offset>(it.ldc) + tile.col; };
    if (how == Way::PARTS) {
        float sums[BN / 2] = {};
        multiply(sums, ring, place, parts.a.blocks);
        store_products(c(), it.ldc, tile, place, it.alpha, sums, it.beta, ring.spare(), left_out);
    } else if (how == Way::EXACT) {
        asm volatile("bar.sync 1, %0;" ::"n"(EXACT_THREADS) : "memory");  // results of the tile before have left the memory
        store_exact_tile<BM, BN, TRANS_A, TRANS_B>(
            ring.spare(), it.depth, it.A, it.lda, tile.row, it.B, it.ldb, tile.col, it.alpha, it.beta, c(), it.ldc,
            tile.rows, tile.cols, left_out.some(), apart);
    }
}

// Computes tiles, each in the way that `way` returns for its verdicts.
template <bool TRANS_A, bool TRANS_B, class Format, int BM, int BN, int STAGES, int GROUP, class Choose, class Multiply>
__device__ __forceinline__ void multiply_parts(
    const SplitProduct<Format, BM, BN>& parts, const PartsSlice& it, char* shared, unsigned* tickets, Choose way,
    Multiply multiply)
{
    PartsRing<Format, BM, BN, STAGES> ring(shared, parts);
    const unsigned plain = as_number(way(parts.all_verdicts()) == Way::PARTS);
    ring.open();  // all threads of the block have read verdicts
    const auto way_of = [&](const auto& tile) {
        return plain ? Way::PARTS : way(parts.verdict(tile.a_strip, tile.b_strip));
    };
    if (threadIdx.x < 128) {  // the producer: one warp copies, the others give their registers
        give_back_registers<40>();
        if (threadIdx.x < 32)
            for (PartsTile<BM, BN, GROUP> tile(it.M, it.N); tile.exists(); tile.advance())
                if (way_of(tile) == Way::PARTS) ring.load(tile);
        if (plain && threadIdx.x / 32 == 1) parts.forget_verdicts_as_warp(tickets);
    } else {
        take_registers<232>();
        const PartsPlace place;
        for (PartsTile<BM, BN, GROUP> tile(it.M, it.N); tile.exists(); tile.advance())
            consume_tile<TRANS_A, TRANS_B, BM, BN>(parts, it, ring, place, tile, way_of(tile), multiply);
    }
    if (!plain) parts.forget_verdicts(tickets);
}

// Both launches of each slice. Tiles that `Format` does not suit are computed exactly, and so is the empty product.
template <
    class Format, int BM, int BN, int STAGES, int GROUP, int SLICE, bool TRANS_A, bool TRANS_B, class Multiply>
__device__ __forceinline__ void split_and_multiply(
    int phase, int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C,
    int ldc, void* workspace, unsigned* tickets, char* shared, Multiply multiply)
{
    const PartsSlice it =
        PartsSlice::of<TRANS_A, TRANS_B>(phase / 2, SLICE, M, N, K, alpha, A, lda, B, ldb, beta, C, ldc);
    const SplitProduct<Format, BM, BN> parts(M, N, it.depth, workspace, tickets);
    follow_launch();
    if (phase % 2 == 0) {
        if (blockIdx.x < parts.units()) split_operands<TRANS_A, TRANS_B>(parts, blockIdx.x, it.A, it.lda, it.B, it.ldb, M, N, it.depth, shared);
    } else {
        const auto way = [&](unsigned verdict) {
            return it.depth > 0 && Format::suit(verdict) ? Way::PARTS : Way::EXACT;
        };
        multiply_parts<TRANS_A, TRANS_B, Format, BM, BN, STAGES, GROUP>(parts, it, shared, tickets, way, multiply);
    }
}
