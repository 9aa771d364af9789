/* gemmlab
summary = "16-byte loads, many on their way at once; one launch, ended by the block that comes last"
idea = "Memory is kept busy by loads on their way, not by threads: a thread has LOADS * 16 bytes under way."
source = "beyond the article: vector loads, registers in place of shared memory, a ticket in place of a second launch"
op = "reduce"
after = "reduce_shuffle"
arch = "sm_80"
params = { BLOCK = 512, BLOCKS = 264, LOADS = 8, ALONE = 16384 }
tune = { BLOCK = [256, 512, 1024], BLOCKS = [264, 528, 1056, 2112, 4096], LOADS = [4, 8], ALONE = [8192, 16384, 32768] }
require = [
    "BLOCK == 128 or BLOCK == 256 or BLOCK == 512 or BLOCK == 1024",
    "BLOCKS >= 1 and 1 <= LOADS <= 16 and BLOCK * LOADS <= 8192",
]
grid = "1 if N <= ALONE else min(BLOCKS, ceil_div(N, 4 * BLOCK))"
threads = "BLOCK"
workspace = "0 if N <= ALONE else 4 * blocks"
tickets = "0 if N <= ALONE else 1"
roundings = "ceil_div(N, 4 * BLOCK * blocks) + 3 + 10 + ceil_div(blocks, BLOCK) + 10"
expect = [
    # 16 bytes a lane and load; one more load is the last block's, of what the others left.
    { shape = "2^18", config = { BLOCKS = 8 }, that = "global_load_requests == N // (4 * 32) + 1" },
    { shape = "2^18", config = { BLOCKS = 8 }, that = "global_atomic_requests == 8" },
    { shape = "2^14", that = "global_load_requests == N // (4 * 32) and global_atomic_requests == 0" },
]
*/

#include "last_block.cuh"
#include "reduce.cuh"

//   x     . . | v v v v v v v v v v v v v v v v v v v v v | . .
//        head   whole vectors of 16 bytes, at their places   tail
//
//   vectors   [ block 0 | block 1 | .. | block 0 | block 1 | .. | block 0 | .. ]      BLOCK vectors each
//              load 0                    load 1                   load 2
//
// A thread asks for all its LOADS vectors of a turn before it uses the first. It keeps a partial result for each of the
// four places in a vector, so that additions do not wait for each other. The start may lie anywhere: up to three
// elements before the first whole vector and up to three behind the last one are the first block's, a thread each.
//
// What the blocks leave is combined by the last of them to finish, in the order of their numbers: the result does not
// depend on which one that is. In its last bits it does on the grid, and on where x starts within 16 bytes.
//
// One block an SM is all that is asked of the compiler: left alone it wants room for 2048 threads, with 32 registers
// each, and then uses vectors before it has asked for them all.
template <int BLOCK, int LOADS, int OPERATOR>
__global__ void __launch_bounds__(BLOCK, 1) reduce_peak(
    long long N, const float* x, float* out, float* workspace, unsigned* tickets)
{
    __shared__ bool last;
    const int thread = threadIdx.x;  // [0, BLOCK)

    const Index head = min(N, static_cast<Index>(words_to_alignment(x)));  // [0, 3]
    const Index count = (N - head) / 4;                                    // whole vectors
    const int tail = (N - head) % 4;                                       // [0, 3]
    const float4* vectors = reinterpret_cast<const float4*>(x + head);

    float four[4] = {identity<OPERATOR>(), identity<OPERATOR>(), identity<OPERATOR>(), identity<OPERATOR>()};
    if (blockIdx.x == 0) {
        if (thread < head) four[0] = x[thread];
        if (thread < tail) four[1] = x[N - tail + thread];
    }

    const Index stride = static_cast<Index>(gridDim.x) * BLOCK;  // vectors between two loads of a thread
    Index i = static_cast<Index>(blockIdx.x) * BLOCK + thread;
    for (; i + (LOADS - 1) * stride < count; i += LOADS * stride) {
        float4 held[LOADS];
#pragma unroll
        for (int load = 0; load < LOADS; ++load) held[load] = __ldg(vectors + i + load * stride);
#pragma unroll
        for (int load = 0; load < LOADS; ++load) combine_four<OPERATOR>(four, held[load]);
    }
    // What is left is less than a turn: some of the loads, or none.
    if (i < count) {
        float4 held[LOADS];
#pragma unroll
        for (int load = 0; load < LOADS; ++load) {
            held[load] = make_float4(
                identity<OPERATOR>(), identity<OPERATOR>(), identity<OPERATOR>(), identity<OPERATOR>());
            if (i + load * stride < count) held[load] = __ldg(vectors + i + load * stride);
        }
#pragma unroll
        for (int load = 0; load < LOADS; ++load) combine_four<OPERATOR>(four, held[load]);
    }

    float own = combine<OPERATOR>(combine<OPERATOR>(four[0], four[1]), combine<OPERATOR>(four[2], four[3]));
    own = reduce_block<BLOCK, OPERATOR>(own);
    if (gridDim.x > 1) {
        const Meeting meeting(tickets, workspace);
        if (thread == 0) last = meeting.leave(own);
        __syncthreads();
        if (!last) return;
        own = identity<OPERATOR>();
        for (unsigned block = thread; block < gridDim.x; block += BLOCK)
            own = combine<OPERATOR>(own, meeting.partial_of(block));
        own = reduce_block<BLOCK, OPERATOR>(own);
    }
    if (thread == 0) *out = own;
}
