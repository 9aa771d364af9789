// What lanes and warps do together.
#include <cooperative_groups.h>

extern "C" {

__global__ void shuffles(float *f, int *x) {
    int i = threadIdx.x, p;
    float v = f[i];
    for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(~0u, v, d);
    v += __shfl_sync(~0u, v, x[0]) + __shfl_down_sync(~0u, v, 3, 16) + __shfl_up_sync(0xffffu, v, x[1]);
    unsigned b = __ballot_sync(~0u, v > 0);
    f[i] = v + b + __any_sync(~0u, x[i]) + __all_sync(~0u, x[i]) + __activemask() + __match_any_sync(~0u, x[i]);
    x[i] = __match_all_sync(~0u, x[i], &p) + p;
}

__global__ void last_warp(float *x) {
    __shared__ float s[64];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    if (threadIdx.x < 32) {
        for (int d = 32; d; d >>= 1) {
            float v = s[threadIdx.x + d];
            __syncwarp();
            if (threadIdx.x < d) s[threadIdx.x] += v;
            __syncwarp();
        }
        if (threadIdx.x == 0) x[0] = s[0];
    }
}

__global__ void groups(int *x) {
    auto tile = cooperative_groups::tiled_partition<8>(cooperative_groups::this_thread_block());
    int v = x[threadIdx.x];
    for (int d = 4; d; d /= 2) v += tile.shfl_down(v, d);
    x[threadIdx.x] = v;
    if (v > 4) {
        auto active = cooperative_groups::coalesced_threads();
        x[99] = active.size() + active.thread_rank();
        active.sync();
    }
}

__global__ void barriers(long long *x) {
    long long start = clock64();
    __nanosleep(10);
    x[threadIdx.x] = clock64() - start + clock();
    asm volatile("bar.sync 1, 64;");
    asm volatile("bar.arrive 2, 64;");
    x[5] = __syncthreads_count(x[2] > 4) + __syncthreads_or(x[3] == 2);
    unsigned where;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(where));
    x[7] = where;
    if (x[9] == 77) __trap();
}

#if __CUDA_ARCH__ >= 800
__global__ void reductions(int *x) {
    x[threadIdx.x] = __reduce_add_sync(~0u, x[threadIdx.x]) + __reduce_max_sync(~0u, x[threadIdx.x]);
    x[9] = __reduce_or_sync(~0u, (unsigned)x[3]);
}
#endif

}
