/* gemmlab
summary = "16-byte loads, many in flight; one launch, in which the last block adds the parts"
idea = "Loads in flight keep memory busy, not threads: a thread has LOADS * 16 bytes in flight."
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
roundings = "ceil_div(N, 4 * BLOCK * blocks) + 3 + ceil_div(blocks, BLOCK) + 2 * (6 + BLOCK // 128)"
expect = [
    # 16 bytes a lane and load; one more load is the last block's, of what the others left.
    { shape = "2^18", config = { BLOCKS = 8 }, that = "global_load_requests == N // (4 * 32) + 1" },
    { shape = "2^18", config = { BLOCKS = 8 }, that = "global_atomic_requests == 8" },
    { shape = "2^14", that = "global_load_requests == N // (4 * 32) and global_atomic_requests == 0" },
]

[search]
BLOCK = [128, 256, 512, 1024]
BLOCKS = [132, 264, 396, 528, 792, 1056, 1584, 2112, 3168, 4096, 8192]
LOADS = [2, 4, 8, 16]
ALONE = [8192, 16384, 32768, 65536]
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
// depend on which one that is. Its last bits depend on the grid, and on where x starts within 16 bytes.
//
// A short row is one block's, and its time is that of a chain of dependent steps. So its loads lie a fixed distance
// apart, which costs no arithmetic, and after the barrier one thread reads what all warps left, in vectors.

// The distance from one load of a thread to the next, in vectors: a constant for the compiler if there is one block.
template <int VECTORS>
struct Fixed {
    __device__ __forceinline__ constexpr operator int() const { return VECTORS; }
};

// `left` vectors from `at` on, of which the thread takes one every `apart`.
template <int LOADS, int OPERATOR, class Way>
__device__ __forceinline__ void combine_run(float (&four)[4], const float4* at, Index left, Way apart)
{
#pragma unroll 1
    for (; left > 0; left -= LOADS * apart, at += LOADS * apart) {
        const int here = min(left, static_cast<Index>(LOADS * apart));
        float4 held[LOADS];
#pragma unroll
        for (int load = 0; load < LOADS; ++load) {
            held[load] = make_float4(
                identity<OPERATOR>(), identity<OPERATOR>(), identity<OPERATOR>(), identity<OPERATOR>());
            if (load * apart < here) held[load] = __ldg(at + load * apart);
        }
#pragma unroll
        for (int load = 0; load < LOADS; ++load) combine_four<OPERATOR>(four, held[load]);
    }
}

template <int OPERATOR>
__device__ __forceinline__ float combine_all(const float (&four)[4])
{
    return combine<OPERATOR>(combine<OPERATOR>(four[0], four[1]), combine<OPERATOR>(four[2], four[3]));
}

// Combines the values of all threads; thread 0 gets the result. A barrier must lie between two calls.
template <int BLOCK, int OPERATOR>
__device__ __forceinline__ float finish_by_one(float own)
{
    constexpr int WARPS = BLOCK / WARP;
    __shared__ float4 warp_values[WARPS / 4];
    own = reduce_lanes<OPERATOR>(own);
    if (threadIdx.x % WARP == 0) reinterpret_cast<float*>(warp_values)[threadIdx.x / WARP] = own;
    __syncthreads();
    if (threadIdx.x > 0) return own;
    float four[4] = {warp_values[0].x, warp_values[0].y, warp_values[0].z, warp_values[0].w};
#pragma unroll
    for (int i = 1; i < WARPS / 4; ++i) combine_four<OPERATOR>(four, warp_values[i]);
    return combine_all<OPERATOR>(four);
}

// The launch bounds ask for only one block an SM. Without them the compiler makes room for 2048 threads, with 32
// registers each, and then uses the first vectors before it has requested all of them.
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
    const Index first = static_cast<Index>(blockIdx.x) * BLOCK + thread;
    if (gridDim.x == 1)
        combine_run<LOADS, OPERATOR>(four, vectors + first, count - first, Fixed<BLOCK>());
    else
        combine_run<LOADS, OPERATOR>(four, vectors + first, count - first, static_cast<int>(gridDim.x * BLOCK));

    float own = finish_by_one<BLOCK, OPERATOR>(combine_all<OPERATOR>(four));
    if (gridDim.x > 1) {
        const Meeting meeting(tickets, workspace);
        if (thread == 0) last = meeting.leave(own);
        __syncthreads();
        if (!last) return;
        own = identity<OPERATOR>();
        for (unsigned block = thread; block < gridDim.x; block += BLOCK)
            own = combine<OPERATOR>(own, meeting.partial_of(block));
        own = finish_by_one<BLOCK, OPERATOR>(own);
    }
    if (thread == 0) *out = own;
}
