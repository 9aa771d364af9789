// Every asynchronous reduction, on many values: into global memory, into another block's memory, by tensor map, and
// from registers. Element i of `out` is combined with element i of `in`; a block has BYTES of each.
#include "asynchronous.cuh"

constexpr int BYTES = 2048;
__shared__ alignas(128) unsigned char given[BYTES], kept[BYTES];
__shared__ u64 cell;

__device__ void copy_in(unsigned char* to, const unsigned char* from) {
    for (int i = threadIdx.x; i < BYTES; i += blockDim.x) to[i] = from[i];
}

#define BULK(NAME, TYPE)                                                                                               \
    extern "C" __global__ void bulk_##NAME(const unsigned char* in, unsigned char* out) {                              \
        copy_in(given, in + blockIdx.x * BYTES);                                                                       \
        fence_async();                                                                                                 \
        __syncthreads();                                                                                               \
        if (threadIdx.x == 0) {                                                                                        \
            asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group." TYPE " [%0], [%1], %2;" ::"l"(          \
                             out + blockIdx.x * BYTES), "r"(shared_address(given)), "r"(BYTES) : "memory");            \
            commit();                                                                                                  \
            wait_stores(0);                                                                                            \
        }                                                                                                              \
    }
BULK(add_u32, "add.u32")
BULK(add_s32, "add.s32")
BULK(add_u64, "add.u64")
BULK(add_f32, "add.f32")
BULK(add_f64, "add.f64")
BULK(add_f16, "add.noftz.f16")
BULK(add_bf16, "add.noftz.bf16")
BULK(min_u32, "min.u32")
BULK(min_s32, "min.s32")
BULK(min_u64, "min.u64")
BULK(min_s64, "min.s64")
BULK(min_f16, "min.f16")
BULK(min_bf16, "min.bf16")
BULK(max_u32, "max.u32")
BULK(max_s32, "max.s32")
BULK(max_u64, "max.u64")
BULK(max_s64, "max.s64")
BULK(max_f16, "max.f16")
BULK(max_bf16, "max.bf16")
BULK(inc_u32, "inc.u32")
BULK(dec_u32, "dec.u32")
BULK(and_b32, "and.b32")
BULK(or_b32, "or.b32")
BULK(xor_b32, "xor.b32")
BULK(and_b64, "and.b64")
BULK(or_b64, "or.b64")
BULK(xor_b64, "xor.b64")

// Both blocks of a cluster send their neighbour's values to it.
__device__ u32 begin_far(const unsigned char* in, const unsigned char* out) {
    const u32 barrier = shared_address(&cell);
    copy_in(given, in + (blockIdx.x ^ 1) * BYTES);
    copy_in(kept, out + blockIdx.x * BYTES);
    fence_async();
    if (threadIdx.x == 0) {
        mbarrier_init(barrier, 1);
        fence_mbarrier_init();
        arrive_expect(barrier, BYTES);
    }
    cluster_sync();
    return map_to(barrier, cluster_rank() ^ 1);
}
__device__ void end_far(unsigned char* out) {
    wait(shared_address(&cell), 0);
    for (int i = threadIdx.x; i < BYTES; i += blockDim.x) out[blockIdx.x * BYTES + i] = kept[i];
    cluster_sync();
}
#define FAR(NAME, TYPE, WORD, LETTER)                                                                                  \
    extern "C" __global__ void __cluster_dims__(2, 1, 1) far_##NAME(const unsigned char* in, unsigned char* out) {     \
        const u32 barrier = begin_far(in, out), there = map_to(shared_address(kept), cluster_rank() ^ 1);              \
        if (threadIdx.x == 0)                                                                                          \
            asm volatile("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes." TYPE         \
                         " [%0], [%1], %2, [%3];" ::"r"(there), "r"(shared_address(given)), "r"(BYTES), "r"(barrier)   \
                         : "memory");                                                                                  \
        end_far(out);                                                                                                  \
    }                                                                                                                  \
    extern "C" __global__ void __cluster_dims__(2, 1, 1) red_##NAME(const unsigned char* in, unsigned char* out) {     \
        const u32 barrier = begin_far(in, out), there = map_to(shared_address(kept), cluster_rank() ^ 1);              \
        const WORD* words = reinterpret_cast<const WORD*>(given);                                                      \
        for (u32 i = threadIdx.x; i < BYTES / sizeof(WORD); i += blockDim.x)                                           \
            asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes." TYPE                \
                         " [%0], %1, [%2];" ::"r"(there + i * (u32)sizeof(WORD)), LETTER(words[i]), "r"(barrier)       \
                         : "memory");                                                                                  \
        end_far(out);                                                                                                  \
    }
FAR(add_u32, "add.u32", u32, "r")
FAR(add_s32, "add.s32", u32, "r")
FAR(add_u64, "add.u64", u64, "l")
FAR(min_u32, "min.u32", u32, "r")
FAR(min_s32, "min.s32", u32, "r")
FAR(max_u32, "max.u32", u32, "r")
FAR(max_s32, "max.s32", u32, "r")
FAR(inc_u32, "inc.u32", u32, "r")
FAR(dec_u32, "dec.u32", u32, "r")
FAR(and_b32, "and.b32", u32, "r")
FAR(or_b32, "or.b32", u32, "r")
FAR(xor_b32, "xor.b32", u32, "r")

// A block has eight rows of 256 bytes of the tensor.
#define TENSOR(NAME)                                                                                                   \
    extern "C" __global__ void tensor_##NAME(const __grid_constant__ TensorMap map, const unsigned char* in) {         \
        copy_in(given, in + blockIdx.x * BYTES);                                                                       \
        fence_async();                                                                                                 \
        __syncthreads();                                                                                               \
        if (threadIdx.x == 0) {                                                                                        \
            asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta." #NAME ".bulk_group [%0, {%1, %2}], [%3];" \
                         ::"l"(&map), "r"(0), "r"(blockIdx.x * 8), "r"(shared_address(given)) : "memory");             \
            commit();                                                                                                  \
            wait_stores(0);                                                                                            \
        }                                                                                                              \
    }
TENSOR(add)
TENSOR(min)
TENSOR(max)
TENSOR(inc)
TENSOR(dec)
TENSOR(and)
TENSOR(or)
TENSOR(xor)
