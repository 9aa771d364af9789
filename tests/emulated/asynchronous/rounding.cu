// Tensor copies of many boxes: block b moves rows ROWS * b to ROWS * (b + 1) - 1 of a tensor with rows of COLUMNS values.
#include "asynchronous.cuh"

constexpr int ROWS = 32, COLUMNS = 256, VALUES = ROWS * COLUMNS;
__shared__ alignas(1024) u32 box[VALUES];
__shared__ u64 loaded;

extern "C" __global__ void load_all(const __grid_constant__ TensorMap map, u32* out) {
    const u32 barrier = shared_address(&loaded);
    if (threadIdx.x == 0) {
        mbarrier_init(barrier, 1);
        fence_mbarrier_init();
        arrive_expect(barrier, 4 * VALUES);
        tensor_load(shared_address(box), &map, barrier, 0, ROWS * blockIdx.x);
    }
    __syncthreads();
    wait(barrier, 0);
    for (int i = threadIdx.x; i < VALUES; i += blockDim.x) out[VALUES * blockIdx.x + i] = box[i];
}

template <bool ADD> __device__ void put_all(const TensorMap* map, const u32* in) {
    for (int i = threadIdx.x; i < VALUES; i += blockDim.x) box[i] = in[VALUES * blockIdx.x + i];
    fence_async();
    __syncthreads();
    if (threadIdx.x == 0) {
        if (ADD)
            asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map),
                         "r"(0), "r"(ROWS * blockIdx.x), "r"(shared_address(box)) : "memory");
        else
            tensor_store(map, shared_address(box), 0, ROWS * blockIdx.x);
        commit();
        wait_stores(0);
    }
}

extern "C" __global__ void store_all(const __grid_constant__ TensorMap map, const u32* in) { put_all<false>(&map, in); }
extern "C" __global__ void add_all(const __grid_constant__ TensorMap map, const u32* in) { put_all<true>(&map, in); }
