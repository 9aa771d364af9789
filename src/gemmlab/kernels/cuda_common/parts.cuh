// Blocks that each computed a part of the same sums add their parts, and no block waits for another.
//
//   parts      0  1  2  3  4  5  6  7    8  9 10         FAN = 8, 11 parts
//              +--+--+--+--+--+--+--+    +--+--+
//   nodes                0                  1            ticket 0 and ticket 1
//                        +------------------+
//   whole sums                     0                     ticket 2
//
// A block leaves its part in memory and takes a ticket of the node above. Whoever takes the last one adds all that was
// left there and goes on to the next level; the others end. The parts of a node are added in pairs, in the order of
// their numbers, each read from memory, the block's own as well. So the bits depend on the number of parts alone, not
// on the order in which blocks come, and an error grows with the logarithm of the number of parts.
//
// `tickets` are zero before the launch, and after it again: a count that is full starts anew. `workspace` has 16-byte
// alignment and may hold anything:
//
//   workspace   [part][four of a thread's sums][thread]   4 * COUNT * THREADS bytes a part; a node's sum replaces that
//                                                         of its first part
#pragma once

// Tickets of one tile: more than there are nodes, ceil(parts / FAN) + ceil(parts / FAN^2) + ... + 1. In the header of
// a kernel: "ceil_div(parts, FAN // 2)".
template <int FAN>
__device__ __forceinline__ constexpr unsigned tickets_for(unsigned parts)
{
    return (parts + FAN / 2 - 1) / (FAN / 2);
}

// Orders this thread's earlier accesses, and those of others that a barrier has ordered before them, before its later
// ones, for the whole GPU. __threadfence also puts all fences into one order, which costs more and is not needed here.
__device__ __forceinline__ void fence_of_gpu()
{
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
}

// Whether `blocks` - 1 others have taken this ticket before. One thread of a block takes it, after a barrier of those
// that have written; behind the next barrier what others had written before their tickets can be read, by loads that
// do not use the level-1 cache.
__device__ __forceinline__ bool takes_last_ticket(unsigned* ticket, unsigned blocks)
{
    fence_of_gpu();  // the parts are there for all before the count tells of them
    const bool last = atomicInc(ticket, blocks - 1) == blocks - 1;
    fence_of_gpu();  // and none is read before the count said that it is there
    return last;
}

// The same for all threads of a block.
__device__ __forceinline__ bool take_last_ticket(unsigned* ticket, unsigned blocks, unsigned thread = threadIdx.x)
{
    __syncthreads();
    bool last = false;
    if (thread == 0) last = takes_last_ticket(ticket, blocks);
    return __syncthreads_or(last);
}

// The same for all lanes of a warp, behind a barrier of the block.
__device__ __forceinline__ bool take_last_ticket_as_warp(unsigned* ticket, unsigned blocks)
{
    bool last = false;
    if (threadIdx.x % 32 == 0) last = takes_last_ticket(ticket, blocks);
    return __any_sync(0xffffffff, last);
}

__device__ __forceinline__ float4 operator+(float4 a, float4 b)
{
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

// COUNT values, a power of two, in pairs of neighbours.
template <int COUNT>
__device__ __forceinline__ float4 add_in_pairs(float4 (&fours)[COUNT])
{
#pragma unroll
    for (int width = 1; width < COUNT; width *= 2)
#pragma unroll
        for (int i = 0; i < COUNT; i += 2 * width) fours[i] = fours[i] + fours[i + width];
    return fours[0];
}

// All threads of `parts` blocks call this, each block with its number `part` in [0, parts). The block that comes last
// has give(i, four) called for i = 0 .. COUNT / 4 - 1 with the whole sums 4 * i .. 4 * i + 3; true for that block.
// `tickets` and `workspace` belong to these blocks alone. The loop that adds is unrolled UNROLL times. Unrolled once,
// many sums need no more registers than few.
template <int FAN, int THREADS, int UNROLL, int COUNT, class Give>
__device__ __forceinline__ bool add_parts(
    const float (&sums)[COUNT], unsigned part, unsigned parts, unsigned* tickets, float* workspace, const Give& give)
{
    static_assert(FAN >= 4 && (FAN & (FAN - 1)) == 0, "parts are added in pairs");
    static_assert(COUNT % 4 == 0, "parts are read and written as float4");
    constexpr int BATCH = COUNT % 8 == 0 && FAN <= 8 ? 2 : 1;  // fours of each part that are asked for at the same time
    const auto held = [&](int i) {
        return make_float4(sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]);
    };
    const auto four_of = [&](unsigned slot, int i) {
        return reinterpret_cast<float4*>(workspace) + (slot * (COUNT / 4ull) + i) * THREADS + threadIdx.x;
    };
    if (parts == 1) {
#pragma unroll
        for (int i = 0; i < COUNT / 4; ++i) give(i, held(i));
        return true;
    }
#pragma unroll
    for (int i = 0; i < COUNT / 4; ++i) *four_of(part, i) = held(i);

    // `left` nodes of this level lie `apart` slots from each other.
    for (unsigned left = parts, apart = 1; left > 1; apart *= FAN) {
        const unsigned above = part / apart / FAN;                                      // the node of the next level
        const unsigned first = above * FAN, children = min(left - first, unsigned(FAN));  // nodes of this level
        left = (left + FAN - 1) / FAN;
        unsigned* const ticket = tickets + above;
        tickets += left;
        if (children == 1) continue;
        if (!take_last_ticket(ticket, children)) return false;

        const float4* from[FAN];
#pragma unroll
        for (int c = 0; c < FAN; ++c) from[c] = four_of((first + c) * apart, 0);
        float4* const to = four_of(first * apart, 0);
#pragma unroll UNROLL
        for (int i = 0; i < COUNT / 4; i += BATCH) {
            float4 child[BATCH][FAN];
#pragma unroll
            for (int b = 0; b < BATCH; ++b)
#pragma unroll
                for (int c = 0; c < FAN; ++c)
                    child[b][c] = c < children ? __ldcg(from[c] + (i + b) * THREADS) : float4{};
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                const float4 sum = add_in_pairs(child[b]);
                if (left == 1) give(i + b, sum);
                else to[(i + b) * THREADS] = sum;
            }
        }
    }
    return true;
}

// The same, but the block that gets true has the whole sums in `sums`.
template <int FAN, int THREADS, int COUNT>
__device__ __forceinline__ bool
join_parts(float (&sums)[COUNT], unsigned part, unsigned parts, unsigned* tickets, float* workspace)
{
    return add_parts<FAN, THREADS, COUNT>(sums, part, parts, tickets, workspace, [&](int i, float4 sum) {
        sums[4 * i] = sum.x;
        sums[4 * i + 1] = sum.y;
        sums[4 * i + 2] = sum.z;
        sums[4 * i + 3] = sum.w;
    });
}
