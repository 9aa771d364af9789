// A tensor map that a kernel changes so that no driver would make it (sm_90a). `// NAME` marks the line reported.
#include "asynchronous.cuh"

extern "C" __global__ void box_of_bytes(const __grid_constant__ TensorMap given, TensorMap* made, float* out, int extent) {
    __shared__ alignas(128) float tile[4][8];
    __shared__ alignas(128) TensorMap map;
    __shared__ u64 cell;
    const u32 barrier = shared_address(&cell), here = shared_address(&map);
    if (threadIdx.x < 16) map.words[threadIdx.x] = given.words[threadIdx.x];
    if (threadIdx.x == 0) {
        mbarrier_init(barrier, 1);
        fence_mbarrier_init();
    }
    __syncthreads();
    if (threadIdx.x == 0)
        asm volatile("tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 0, %1;" ::"r"(here), "r"(extent) : "memory");
    __syncwarp();
    asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;" ::"l"(made),
                 "r"(here) : "memory");
    if (threadIdx.x == 0) {
        asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(made) : "memory");
        arrive_expect(barrier, 16 * extent);
        tensor_load(shared_address(tile), made, barrier, 0, 0);  // REFUSED
    }
    wait(barrier, 0);
    for (int i = threadIdx.x; i < 4 * extent; i += 32) out[i] = tile[0][i];
}
