// A tensor map that the kernel itself changes (sm_90a).
#include "asynchronous.cuh"

extern "C" __global__ void replaced(const __grid_constant__ TensorMap given, TensorMap* made, const float* other, float* out) {
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
    if (threadIdx.x == 0) {
        asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" ::"r"(here), "l"(other) : "memory");
        asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 1, %1;" ::"r"(here), "r"(3) : "memory");
        asm volatile("tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 0, %1;" ::"r"(here), "r"(8) : "memory");
        asm volatile("tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], 0, %1;" ::"r"(here), "l"(64ll) : "memory");
        asm volatile("tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%0], 2;" ::"r"(here) : "memory");
    }
    __syncwarp();
    if (threadIdx.x < 32)
        asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;" ::"l"(made),
                     "r"(here) : "memory");
    if (threadIdx.x == 0) {
        asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(made) : "memory");
        arrive_expect(barrier, 128);
        tensor_load(shared_address(tile), made, barrier, 4, 0);
    }
    wait(barrier, 0);
    out[threadIdx.x] = tile[threadIdx.x / 8][threadIdx.x % 8];
}
