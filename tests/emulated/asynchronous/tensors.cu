// Tensor copies: what arrives in shared memory, byte for byte, and what leaves it.
#include "asynchronous.cuh"

// Coordinates 0 to RANK - 1 of the box, the innermost first.
struct Corner {
    int at[5];
};

template <int RANK> __device__ void load(u32 to, const TensorMap* map, u32 barrier, Corner c) {
    if constexpr (RANK == 1)
        asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2}], [%3];" ::"r"(to),
                     "l"(map), "r"(c.at[0]), "r"(barrier) : "memory");
    if constexpr (RANK == 2) tensor_load(to, map, barrier, c.at[0], c.at[1]);
    if constexpr (RANK == 3)
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(to),
                     "l"(map), "r"(c.at[0]), "r"(c.at[1]), "r"(c.at[2]), "r"(barrier) : "memory");
    if constexpr (RANK == 4)
        asm volatile(
            "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], [%6];" ::"r"(to),
            "l"(map), "r"(c.at[0]), "r"(c.at[1]), "r"(c.at[2]), "r"(c.at[3]), "r"(barrier) : "memory");
    if constexpr (RANK == 5)
        asm volatile(
            "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5, %6}], [%7];" ::"r"(to),
            "l"(map), "r"(c.at[0]), "r"(c.at[1]), "r"(c.at[2]), "r"(c.at[3]), "r"(c.at[4]), "r"(barrier) : "memory");
}

// Load one box and write shared memory out as it is.
template <int RANK>
__device__ void show_box(const TensorMap* map, unsigned char* out, Corner corner, int bytes) {
    extern __shared__ unsigned char memory[];
    __shared__ u64 cell;
    const u32 raw = shared_address(memory), base = (raw + 1023) / 1024 * 1024, barrier = shared_address(&cell);
    if (threadIdx.x == 0) {
        mbarrier_init(barrier, 1);
        fence_mbarrier_init();
        asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
        arrive_expect(barrier, bytes);
        load<RANK>(base, map, barrier, corner);
    }
    __syncthreads();
    wait(barrier, 0);
    for (int i = threadIdx.x; i < bytes; i += blockDim.x) out[i] = memory[base - raw + i];
}

#define SHOW(RANK)                                                                                                             \
    extern "C" __global__ void show##RANK(const __grid_constant__ TensorMap map, unsigned char* out, int c0, int c1, int c2,   \
                                          int c3, int c4, int bytes) {                                                         \
        show_box<RANK>(&map, out, Corner{{c0, c1, c2, c3, c4}}, bytes);                                                        \
    }
SHOW(1)
SHOW(2)
SHOW(3)
SHOW(4)
SHOW(5)

// Fill shared memory from `in`, and store or reduce one box of two dimensions.
template <int OPERATION>
__device__ void put_box(const TensorMap* map, const unsigned char* in, int x, int y, int bytes) {
    extern __shared__ unsigned char memory[];
    const u32 raw = shared_address(memory), base = (raw + 1023) / 1024 * 1024;
    for (int i = threadIdx.x; i < bytes; i += blockDim.x) memory[base - raw + i] = in[i];
    fence_async();
    __syncthreads();
    if (threadIdx.x == 0) {
        if (OPERATION == 0) tensor_store(map, base, x, y);
#define REDUCE(NUMBER, NAME)                                                                                                   \
    if (OPERATION == NUMBER)                                                                                                   \
        asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta." NAME ".bulk_group [%0, {%1, %2}], [%3];" ::"l"(map), \
                     "r"(x), "r"(y), "r"(base) : "memory");
        REDUCE(1, "add")
        REDUCE(2, "min")
        REDUCE(3, "max")
        REDUCE(4, "xor")
        REDUCE(5, "inc")
        commit();
        wait_stores(0);
    }
}
#define PUT(NUMBER)                                                                                                            \
    extern "C" __global__ void put##NUMBER(const __grid_constant__ TensorMap map, const unsigned char* in, int x, int y,       \
                                           int bytes) {                                                                       \
        put_box<NUMBER>(&map, in, x, y, bytes);                                                                                \
    }
PUT(0)
PUT(1)
PUT(2)
PUT(3)
PUT(4)
PUT(5)
