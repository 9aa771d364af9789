// A ring of two stages whose waits are wrong, and tensor maps that do not fit: each kernel with its bug and without. `// NAME` marks the lines reported.
#include "hazard_pairs.cuh"

__shared__ u64 released[2];
__shared__ alignas(1024) float stages[2][128];

constexpr int STEPS = 2;  // of 128 elements: a stage is filled again from the third on
enum Bug { NONE, NO_EMPTY, SAME_PARITY, EMPTY_PARITY, FULL_PARITY };

__device__ void consume_wait(u32 barrier, u32 parity) {
    wait(barrier, parity);  // HELPER
}

// Warp 3 fills, the others read.
template <int BUG> __device__ void ring(const float* in, float* out) {
    if (threadIdx.x == 0)
        for (int i = 0; i < 2; ++i) mbarrier_init(shared_address(&released[i]), 3);
    begin(1);
    const int steps = 4 * STEPS;
    if (threadIdx.x >= 96) {
        for (int step = 0; step < steps && threadIdx.x == 96; ++step) {
            const int i = step % 2, round = step / 2;
            if (BUG != NO_EMPTY)
                wait(shared_address(&released[i]), BUG == EMPTY_PARITY ? round & 1 : BUG == SAME_PARITY ? 1 : ~round & 1);  // EMPTY_WAIT
            arrive_expect(cell(i), 128);
            bulk_load(shared_address(stages[i]), in + 32 * step, 128, cell(i));  // REFILL
        }
        return;
    }
    float sum = 0;
    for (int step = 0; step < steps; ++step) {
        const int i = step % 2;
        consume_wait(cell(i), BUG == FULL_PARITY ? ~(step / 2) & 1 : step / 2 & 1);  // FULL_WAIT
        sum += stages[i][threadIdx.x % 32];  // CONSUMED
        __syncwarp();
        if (threadIdx.x % 32 == 0) arrive(shared_address(&released[i]));
    }
    out[threadIdx.x] = sum;
}
template <bool GOOD> __device__ void ring_without_empty(const float* in, float* out) { ring<GOOD ? NONE : NO_EMPTY>(in, out); }
template <bool GOOD> __device__ void ring_same_parity(const float* in, float* out) { ring<GOOD ? NONE : SAME_PARITY>(in, out); }
template <bool GOOD> __device__ void ring_empty_parity(const float* in, float* out) { ring<GOOD ? NONE : EMPTY_PARITY>(in, out); }
template <bool GOOD> __device__ void ring_full_parity(const float* in, float* out) { ring<GOOD ? NONE : FULL_PARITY>(in, out); }  // FULL_RING

// The mbarrier is told of more bytes than the map's box has.
template <bool GOOD> __device__ void small_box(const TensorMap* map, float* out) {
    begin(1);
    if (threadIdx.x == 0) {
        arrive_expect(cell(0), GOOD ? 1024 : 2048);
        tensor_load(shared_address(memory), map, cell(0), 0, 0);  // SMALL_BOX
    }
    wait(cell(0), 0);
    out[threadIdx.x] = memory[threadIdx.x];
}

// CUDA allows negative coordinates for loads only.
template <bool GOOD> __device__ void store_before(const TensorMap* map, float* out) {
    memory[threadIdx.x] = memory[128 + threadIdx.x] = 1;
    fence_async();
    __syncthreads();
    if (threadIdx.x == 0) {
        tensor_store(map, shared_address(memory), GOOD ? 4 : -4, GOOD ? 4 : 0);  // BEFORE
        commit();
        wait_stores(0);
    }
    out[threadIdx.x] = 1;
}

// Without __grid_constant__ the compiler copies the map to local memory.
template <bool GOOD> __device__ void map_by_value(const TensorMap* map, float* out) {
    begin(1);
    if (threadIdx.x == 0) {
        arrive_expect(cell(0), 1024);
        tensor_load(shared_address(memory), map, cell(0), 0, 0);  // COPIED_MAP
    }
    wait(cell(0), 0);
    out[threadIdx.x] = memory[threadIdx.x];
}

// Another block's memory, in a launch without a cluster.
template <bool GOOD> __device__ void no_cluster(float* out) {
    float seen;
    memory[threadIdx.x] = threadIdx.x;
    __syncthreads();
    const u32 from = map_to(shared_address(&memory[threadIdx.x]), GOOD ? 0 : 1);
    asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(seen) : "r"(from) : "memory");  // ALONE
    out[threadIdx.x] = seen;
}

template <bool GOOD> __device__ void no_cluster_store(float* out) {
    begin(1);
    if (threadIdx.x == 0) {
        const u32 rank = GOOD ? 0 : 1;
        arrive_expect(cell(0), 4);
        asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(map_to(shared_address(memory), rank)), "r"(7), "r"(map_to(cell(0), rank)) : "memory");  // ALONE_STORE
    }
    wait(cell(0), 0);
    out[threadIdx.x] = memory[0];
}

// An asynchronous store to a block's own memory, in a launch without a cluster.
__device__ void no_cluster_own(float* out) {
    begin(1);
    if (threadIdx.x == 0) {
        arrive_expect(cell(0), 4);
        asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(shared_address(memory)), "r"(7), "r"(cell(0)) : "memory");  // ALONE_OWN
    }
    wait(cell(0), 0);
    out[threadIdx.x] = memory[0];
}

PAIR(ring_without_empty, (const float* in, float* out), (in, out))
PAIR(ring_same_parity, (const float* in, float* out), (in, out))
PAIR(ring_empty_parity, (const float* in, float* out), (in, out))
PAIR(ring_full_parity, (const float* in, float* out), (in, out))
PAIR(small_box, (const __grid_constant__ TensorMap map, float* out), (&map, out))
PAIR(store_before, (const __grid_constant__ TensorMap map, float* out), (&map, out))
PAIR(no_cluster, (float* out), (out))
extern "C" __global__ void no_cluster_store_bad(float* out) { no_cluster_store<false>(out); }
extern "C" __global__ void __cluster_dims__(1, 1, 1) no_cluster_store_good(float* out) { no_cluster_store<true>(out); }
extern "C" __global__ void no_cluster_own_bad(float* out) { no_cluster_own(out); }
extern "C" __global__ void __cluster_dims__(1, 1, 1) no_cluster_own_good(float* out) { no_cluster_own(out); }
extern "C" __global__ void map_by_value_bad(const TensorMap map, float* out) { map_by_value<false>(&map, out); }
extern "C" __global__ void map_by_value_good(const __grid_constant__ TensorMap map, float* out) { map_by_value<true>(&map, out); }
