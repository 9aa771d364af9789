// Sums of products of parts on their way out of the tensor cores, while those multiply for another sum.
//
// Tensor cores cut off what a sum does not hold, so no sum stays in them for long. Taking one out is 3 instructions for
// each result; meanwhile they would be idle, since both warpgroups of a block end their sums at about the same time:
//
//     narrow tiles    a warpgroup has registers for two sums: it begins one before it takes the other out, but for the
//                     last of 128 of k, since ptxas serialises products that go on where a loop begins again
//     wide tiles      warpgroups take turns: one begins a sum when the other's is half done. So do narrow ones whose sums
//                     have all 128 of k
#pragma once

#include "parts_ring.cuh"

constexpr int STEPS_OF_BLOCK = 8, STEPS_OF_STAGE = 4;  // of 16 of k

// Turns of the two warpgroups that multiply. Each has a barrier, at which the other arrives.
__device__ __forceinline__ void wait_for_turn(int group)
{
    if (group == 0) asm volatile("bar.sync 3, 256;" ::: "memory");
    else asm volatile("bar.sync 4, 256;" ::: "memory");
}
__device__ __forceinline__ void give_turn(int group)
{
    if (group == 0) asm volatile("bar.arrive 3, 256;" ::: "memory");
    else asm volatile("bar.arrive 4, 256;" ::: "memory");
}

// Adds the products of all blocks of k, as the producer brings them, to the sums of a warpgroup. STEPS of k make a sum
// in the tensor cores, which has two parts: `multiply(high, low, a, b, add)` begins the products of a step, given the
// first parts of A and B, and `whole(high, low)` is their value. Without TURNS, wide tiles need fewer registers: so does
// by_tile, which has other things to keep.
template <int BM, int BN, int STEPS, bool TURNS, class Ring, class Multiply, class Whole>
__device__ __forceinline__ void add_products(
    float (&sums)[BN / 2], Ring& ring, PartsPlace place, unsigned blocks, const Multiply& multiply, const Whole& whole)
{
    constexpr bool TWO = BN == 64 && STEPS < STEPS_OF_BLOCK;
    // Steps of an iteration of the loop below: whole stages, and whole sums.
    constexpr int LONGER = STEPS > STEPS_OF_STAGE ? STEPS : STEPS_OF_STAGE, STRETCH = TWO ? STEPS_OF_BLOCK : LONGER;
    constexpr int SUMS = STRETCH / STEPS;
    const int group = place.row / 64;
    const unsigned all_steps = STEPS_OF_BLOCK * blocks;
#pragma unroll 1
    for (unsigned done = 0; done < all_steps; done += STRETCH) {
        typename Ring::Stage stages[STRETCH / STEPS_OF_STAGE];
        float high[TWO ? 2 : 1][BN / 2], low[TWO ? 2 : 1][BN / 2];
        const auto begin = [&](int sum, int step) {  // of a sum
            const int at = sum * STEPS + step, bytes = at % STEPS_OF_STAGE * 32;
            auto& stage = stages[at / STEPS_OF_STAGE];
            if (bytes == 0) stage = ring.next();
            if (step == 0 || bytes == 0) begin_products();
            const Rows a = rows_of_128_bytes(stage.a + group * 64 * 128), b = rows_of_128_bytes(stage.b);
            multiply(high[TWO ? sum % 2 : 0], low[TWO ? sum % 2 : 0], further(a, bytes), further(b, bytes), step > 0);
        };
        // The steps before `end` are done: a stage that ends with the last ones can be filled again.
        const auto release = [&](int first, int end) {
            if (end / STEPS_OF_STAGE > first / STEPS_OF_STAGE) ring.release(stages[first / STEPS_OF_STAGE]);
        };
        const auto take_out = [&](int sum) {
            auto &of_high = high[TWO ? sum % 2 : 0], &of_low = low[TWO ? sum % 2 : 0];
            pin(of_high);
            pin(of_low);
            const float *const a_scales = stages[sum * STEPS / STEPS_OF_STAGE].a_scales + place.row,
                        *const b_scales = stages[sum * STEPS / STEPS_OF_STAGE].b_scales + place.col;
#pragma unroll
            for (int i = 0; i < BN / 2; ++i) {
                const float a_scale = a_scales[i % 4 / 2 * 8];
                const float b_scale = b_scales[i / 4 * 8 + i % 2];
                sums[i] = fmaf(whole(of_high[i], of_low[i]) * a_scale, b_scale, sums[i]);
            }
        };
        if constexpr (TWO) {
#pragma unroll
            for (int sum = 0; sum <= SUMS; ++sum) {
                if (sum < SUMS) {
#pragma unroll
                    for (int step = 0; step < STEPS; ++step) begin(sum, step);
                    commit_products();
                }
                if (sum == 0) continue;
                if (sum < SUMS) wait_for_products<1>();
                else wait_for_products<0>();
                release((sum - 1) * STEPS, sum * STEPS);
                take_out(sum - 1);
            }
        } else {
            // Group 0 has the first turn of a tile, and nobody gives the last one: a tile leaves both barriers as it
            // found them.
#pragma unroll
            for (int sum = 0; sum < SUMS; ++sum) {
                const int first = sum * STEPS, middle = first + STEPS / 2, end = first + STEPS;
                if (TURNS && (group == 1 || done || sum)) wait_for_turn(group);
#pragma unroll
                for (int step = 0; step < STEPS; ++step) {
                    begin(sum, step);
                    if (step == STEPS / 2 - 1 || step == STEPS - 1) commit_products();
                }
                wait_for_products<1>();
                if (TURNS && (group == 0 || done + end < all_steps)) give_turn(1 - group);
                release(first, middle);
                wait_for_products<0>();
                release(middle, end);
                take_out(sum);
            }
        }
    }
}
