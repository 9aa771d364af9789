// Strips that halves do not suit, split once more in bfloat16: by warpgroups of one launch that take them in turn.
#pragma once

#include "parts_product.cuh"
#include "turns.cuh"

// A warpgroup that splits a piece.
struct SplitWarpgroup {
    static __device__ __forceinline__ unsigned thread() { return threadIdx.x % 128; }
    static __device__ __forceinline__ void meet()
    {
        asm volatile("bar.sync %0, 128;" ::"r"(6 + threadIdx.x / 128) : "memory");
    }
};

// Splits into bfloat16 each strip of a tile that halves do not suit, whether because of this strip or of the other
// operand's.
template <bool TRANS_A, bool TRANS_B, class Bfloats>
__device__ __forceinline__ void split_other_strips(
    const Bfloats& bfloats, const PartsSlice& it, Turns turns, unsigned& taken, char* image)
{
    using Team = SplitWarpgroup;
    const unsigned of_a = bfloats.a.verdicts.all(bfloats.odd), of_b = bfloats.b.verdicts.all(bfloats.odd);
    const auto needed = [&](const auto& operand, unsigned unit, bool across, unsigned of_other) {
        const unsigned verdict = operand.verdicts.of_strip(operand.strip_of(unit, across), bfloats.odd);
        return ThreeBfloats::suit(verdict) && !TwoHalves::suit(verdict | of_other);
    };
    const unsigned of_a_units = bfloats.a.units();
#pragma unroll 1
    for (;;) {
        if (Team::thread() == 0) taken = turns.take(Turns::PIECES);
        Team::meet();
        const unsigned unit = taken;
        if (unit >= bfloats.units()) break;
        if (unit < of_a_units ? needed(bfloats.a, unit, TRANS_A, of_b)
                              : needed(bfloats.b, unit - of_a_units, !TRANS_B, of_a)) {
            split_operands<TRANS_A, TRANS_B, false, Team>(
                bfloats, unit, it.A, it.lda, it.B, it.ldb, it.M, it.N, it.depth, image);
            if (Team::thread() == 0) wait_until_stored();
        }
        Team::meet();  // the image has been read, and scales are stored
        if (Team::thread() == 0) turns.end_one(Turns::PIECES);
    }
    publish_to_copies();
}
