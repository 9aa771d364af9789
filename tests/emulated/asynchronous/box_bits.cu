// One tensor copy: shared memory after a load, with the bytes that its mbarrier received, and stores of one to five
// dimensions. A load of unknown size (`expected` is 0) is given time, and its bytes are counted after.
#include "asynchronous.cuh"

constexpr int WORDS = 4096, CYCLES = 1 << 18;
__shared__ alignas(1024) u32 memory[WORDS];
__shared__ u64 cell;

__device__ void fill(const u32* in) {
    for (int i = threadIdx.x; i < WORDS; i += blockDim.x) memory[i] = in ? in[i] : 0xEEEEEEEE;
    fence_async();
    __syncthreads();
}
__device__ void show(u32* out, u32* bytes, u32 expected) {
    const u32 barrier = shared_address(&cell);
    if (threadIdx.x == 0 && !expected)
        for (const long long start = clock64(); clock64() - start < CYCLES;) {
        }
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
    __syncthreads();
    if (expected) wait(barrier, 0);
    for (int i = threadIdx.x; i < WORDS; i += blockDim.x) out[i] = memory[i];
}
__device__ void begin(u32 expected) {
    const u32 barrier = shared_address(&cell);
    mbarrier_init(barrier, 1);
    fence_mbarrier_init();
    if (expected) arrive_expect(barrier, expected);
}

#define BOX(RANK, PLACE, ...)                                                                                          \
    extern "C" __global__ void load##RANK(const __grid_constant__ TensorMap map, u32* out, u32* bytes, int c0, int c1, \
                                          int c2, int c3, int c4, u32 expected) {                                      \
        fill(nullptr);                                                                                                 \
        if (threadIdx.x == 0) {                                                                                        \
            begin(expected);                                                                                           \
            asm volatile("cp.async.bulk.tensor." #RANK "d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "  \
                         "[%1, {" PLACE "}], [%2];" ::"r"(shared_address(memory)), "l"(&map),                          \
                         "r"(shared_address(&cell)), __VA_ARGS__ : "memory");                                          \
        }                                                                                                              \
        show(out, bytes, expected);                                                                                    \
    }                                                                                                                  \
    extern "C" __global__ void store##RANK(const __grid_constant__ TensorMap map, const u32* in, u32* none, int c0,    \
                                           int c1, int c2, int c3, int c4, u32 expected) {                             \
        fill(in);                                                                                                      \
        if (threadIdx.x == 0) {                                                                                        \
            asm volatile("cp.async.bulk.tensor." #RANK "d.global.shared::cta.bulk_group [%1, {" PLACE "}], [%0];" ::"r"( \
                             shared_address(memory)), "l"(&map), "r"(0), __VA_ARGS__ : "memory");                      \
            commit();                                                                                                  \
            wait_stores(0);                                                                                            \
        }                                                                                                              \
    }
BOX(1, "%3", "r"(c0))
BOX(2, "%3, %4", "r"(c0), "r"(c1))
BOX(3, "%3, %4, %5", "r"(c0), "r"(c1), "r"(c2))
BOX(4, "%3, %4, %5, %6", "r"(c0), "r"(c1), "r"(c2), "r"(c3))
BOX(5, "%3, %4, %5, %6, %7", "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4))
