// What compute capability 9.0 adds: barriers in memory, bulk copies, clusters, matrix products of a warp group (sm_90a).
extern "C" {

__global__ void bulk_copy(const float *g, float *f) {
    __shared__ __align__(16) float s[64];
    __shared__ __align__(8) unsigned long long barrier;
    unsigned b = __cvta_generic_to_shared(&barrier), to = __cvta_generic_to_shared(s);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(b));
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 256;" ::"r"(b));
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];"
                     ::"r"(to), "l"(g), "r"(b) : "memory");
    }
    __syncthreads();
    asm volatile("{.reg .pred p; L: mbarrier.try_wait.parity.shared.b64 p, [%0], 0; @!p bra L;}" ::"r"(b) : "memory");
    f[threadIdx.x] = s[threadIdx.x];
}

__global__ void __cluster_dims__(2, 1, 1) neighbour(float *f) {
    __shared__ float s[32];
    s[threadIdx.x] = f[threadIdx.x];
    asm volatile("barrier.cluster.arrive.aligned;\n barrier.cluster.wait.aligned;");
    unsigned a = __cvta_generic_to_shared(s + 3), b;
    float v;
    asm("mapa.shared::cluster.u32 %0, %1, 1;" : "=r"(b) : "r"(a));
    asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(v) : "r"(b));
    f[threadIdx.x] = v;
}

#if __CUDA_ARCH_FEAT_SM90_ALL
__global__ void group_product(float *f, unsigned long long a, unsigned long long b) {
    float c0 = f[0], c1 = f[1], c2 = f[2], c3 = f[3];
    asm volatile("wgmma.fence.sync.aligned;");
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
                 : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3) : "l"(a), "l"(b));
    asm volatile("wgmma.commit_group.sync.aligned;\n wgmma.wait_group.sync.aligned 0;");
    f[threadIdx.x] = c0 + c1 + c2 + c3;
}
#endif

}
