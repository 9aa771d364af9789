// Atomic operations in shared memory that lanes of a warp execute on cells of the same banks: the old values tell the
// order of the lanes, the cycles how often the warp was served.
using u32 = unsigned int;

constexpr int CELLS = 1024, REPEATS = 8;
__shared__ u32 cells[CELLS];

template <class F> __device__ void repeat(const u32* place, u32* old, u32* sums, u32* cycles, F update) {
    const u32 mine = place[threadIdx.x];
    u32 least = ~0u, seen = 0;
    for (int n = 0; n < REPEATS; ++n) {
        for (int i = threadIdx.x; i < CELLS; i += 32) cells[i] = 0;
        __syncwarp();
        const u32 start = clock();
        if (mine < CELLS) seen = update(mine);
        __syncwarp();
        const u32 spent = clock() - start;
        least = spent < least ? spent : least;
    }
    old[threadIdx.x] = seen;
    cycles[threadIdx.x] = least;
    for (int i = threadIdx.x; i < CELLS; i += 32) sums[i] = cells[i];
}

#define SWAP(NAME, UPDATE)                                                                                             \
    extern "C" __global__ void NAME(const u32* place, u32* old, u32* sums, u32* cycles) {                              \
        repeat(place, old, sums, cycles, [](u32 at) -> u32 { return UPDATE; });                                        \
    }
SWAP(float_add, __float_as_uint(atomicAdd(reinterpret_cast<float*>(cells) + at, 1.0f + threadIdx.x)))
SWAP(integer_add, atomicAdd(cells + at, 1u + threadIdx.x))
SWAP(compare, atomicCAS(cells + at, 0u, 1u + threadIdx.x))
SWAP(exchange, atomicExch(cells + at, 1u + threadIdx.x))
