// Bulk copies of contiguous bytes: reductions of every type, groups, hints, prefetches; small instructions of sm_90.
#include "asynchronous.cuh"

__shared__ alignas(128) unsigned char memory[1024];
__shared__ u64 cell;

#define REDUCE(NAME, TYPE)                                                                                              \
    extern "C" __global__ void NAME(const unsigned char* in, void* out, int bytes) {                                    \
        for (int i = threadIdx.x; i < bytes; i += blockDim.x) memory[i] = in[i];                                        \
        fence_async();                                                                                                  \
        __syncthreads();                                                                                                \
        if (threadIdx.x == 0) {                                                                                         \
            asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group." TYPE " [%0], [%1], %2;" ::"l"(out),      \
                         "r"(shared_address(memory)), "r"(bytes) : "memory");                                           \
            commit();                                                                                                   \
            wait_stores(0);                                                                                             \
        }                                                                                                               \
    }
REDUCE(add_u32, "add.u32")
REDUCE(add_s32, "add.s32")
REDUCE(add_u64, "add.u64")
REDUCE(inc_u32, "inc.u32")
REDUCE(dec_u32, "dec.u32")
REDUCE(min_u32, "min.u32")
REDUCE(max_s32, "max.s32")
REDUCE(min_s64, "min.s64")
REDUCE(max_u64, "max.u64")
REDUCE(and_b32, "and.b32")
REDUCE(or_b64, "or.b64")
REDUCE(xor_b32, "xor.b32")
REDUCE(add_f32, "add.f32")
REDUCE(add_f64, "add.f64")
REDUCE(add_f16, "add.noftz.f16")
REDUCE(min_f16, "min.f16")
REDUCE(add_bf16, "add.noftz.bf16")
REDUCE(max_bf16, "max.bf16")

// Two groups with cache policies; the first stage is written again while the second is read.
extern "C" __global__ void groups(const float* in, float* out) {
    float* stage = reinterpret_cast<float*>(memory);
    const u64 policy = 0x12F0000000000000ull;
    if (threadIdx.x == 0) {
        mbarrier_init(shared_address(&cell), 1);
        fence_mbarrier_init();
        arrive_expect(shared_address(&cell), 256);
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(in), "r"(256) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(
                         shared_address(stage)), "l"(in), "r"(256), "r"(shared_address(&cell)), "l"(policy) : "memory");
    }
    __syncthreads();
    wait(shared_address(&cell), 0);
    stage[64 + threadIdx.x] = stage[threadIdx.x] * 2;
    fence_async();
    __syncthreads();
    if (threadIdx.x == 0) {
        bulk_store(out, shared_address(stage), 256);
        commit();
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%0], [%1], %2, %3;" ::"l"(out + 64),
                     "r"(shared_address(stage + 64)), "r"(256), "l"(policy) : "memory");
        commit();
        wait_reads(1);
    }
    __syncthreads();
    stage[threadIdx.x] = 0;
    fence_async();
    __syncthreads();
    if (threadIdx.x == 0) {
        bulk_store(out + 128, shared_address(stage), 256);
        commit();
        wait_reads(0);
    }
}

// elect.sync, stmatrix, griddepcontrol and fences.
extern "C" __global__ void small(u32* out) {
    __shared__ alignas(16) u32 tile[4][32];
    asm volatile("griddepcontrol.wait;" ::: "memory");
    u32 leader, elected;
    asm volatile("{.reg .pred p; elect.sync %0|p, 0xffffffff; selp.u32 %1, 1, 0, p;}" : "=r"(leader), "=r"(elected));
    out[threadIdx.x] = elected * 100 + leader;
    if (threadIdx.x >= 5) {
        asm volatile("{.reg .pred p; elect.sync %0|p, 0xffffffe0; selp.u32 %1, 1, 0, p;}" : "=r"(leader), "=r"(elected));
        out[32 + threadIdx.x] = elected * 100 + leader;
    }
    __syncwarp();
    const u32 value = 2 * threadIdx.x | (2 * threadIdx.x + 1) << 16;
    const u32 row = shared_address(tile) + threadIdx.x * 16;
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row), "r"(value), "r"(value + 64 * 65537),
                 "r"(value + 128 * 65537), "r"(value + 192 * 65537) : "memory");
    __syncwarp();
    for (int i = 0; i < 4; ++i) out[64 + 32 * i + threadIdx.x] = tile[i][threadIdx.x];
    __syncwarp();
    asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};" ::"r"(row), "r"(value) : "memory");
    __syncwarp();
    out[192 + threadIdx.x] = tile[0][threadIdx.x];
    asm volatile("fence.proxy.async;" ::: "memory");
    asm volatile("fence.proxy.alias;" ::: "memory");
    asm volatile("fence.proxy.tensormap::generic.release.gpu;" ::: "memory");
    asm volatile("fence.acq_rel.cluster;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

// Wrong addresses.
extern "C" __global__ void wrong(const unsigned char* in, u32 shift, u32 offset, u32 bytes) {
    mbarrier_init(shared_address(&cell), 1);
    fence_mbarrier_init();
    arrive_expect(shared_address(&cell), bytes);
    bulk_load(shared_address(memory) + offset, in + shift, bytes, shared_address(&cell));  // LOAD
    wait(shared_address(&cell), 0);
}

// The address of a tensor map that is none.
extern "C" __global__ void no_map(const __grid_constant__ TensorMap map, int offset) {
    mbarrier_init(shared_address(&cell), 1);
    fence_mbarrier_init();
    tensor_load(shared_address(memory), reinterpret_cast<const TensorMap*>(reinterpret_cast<const char*>(&map) + offset),
                shared_address(&cell), 0, 0);
}
