// A look at shared memory after a tensor copy. One of unknown size (`expected` is 0) is given time, and its bytes are
// counted after.
#include "asynchronous.cuh"

constexpr int WORDS = 8192, CYCLES = 1 << 20;
__shared__ alignas(1024) u32 memory[WORDS];
__shared__ u64 cell;

template <int RANK> __device__ void look(const TensorMap* map, u32* out, u32* bytes, u32 expected, const int (&c)[5]) {
    const u32 barrier = shared_address(&cell), to = shared_address(memory);
    for (int i = threadIdx.x; i < WORDS; i += blockDim.x) memory[i] = 0xEEEEEEEE;
    fence_async();
    __syncthreads();
    if (threadIdx.x == 0) {
        mbarrier_init(barrier, 1);
        fence_mbarrier_init();
        if (expected) arrive_expect(barrier, expected);
        if constexpr (RANK == 3)
            asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(to),
                         "l"(map), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(barrier) : "memory");
        if constexpr (RANK == 4)
            asm volatile(
                "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], [%6];" ::"r"(to),
                "l"(map), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]), "r"(barrier) : "memory");
        if constexpr (RANK == 5)
            asm volatile(
                "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5, %6}], [%7];" ::"r"(to),
                "l"(map), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]), "r"(c[4]), "r"(barrier) : "memory");
        if (!expected)
            for (const long long start = clock64(); clock64() - start < CYCLES;) {
            }
    }
    __syncthreads();
    if (expected) wait(barrier, 0);
    for (int i = threadIdx.x; i < WORDS; i += blockDim.x) out[i] = memory[i];
    // The phase lacks its arrival, then only as many expected bytes as the copy has brought too many.
    if (threadIdx.x == 0 && !expected) {
        u32 count = 0;
        arrive(barrier);
        while (!test_parity(barrier, 0) && count < 4 * WORDS) {
            expect(barrier, 16);
            count += 16;
        }
        *bytes = count;
    }
}

#define LOOK(RANK)                                                                                                              \
    extern "C" __global__ void look##RANK(const __grid_constant__ TensorMap map, u32* out, u32* bytes, int c0, int c1, int c2,  \
                                          int c3, int c4, u32 expected) {                                                       \
        look<RANK>(&map, out, bytes, expected, {c0, c1, c2, c3, c4});                                                                    \
    }
LOOK(3)
LOOK(4)
LOOK(5)
