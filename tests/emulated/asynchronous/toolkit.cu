// The same through the headers of the CUDA toolkit, as people write it.
#include <cooperative_groups.h>
#include <cuda_awbarrier_primitives.h>
#include <cuda_pipeline_primitives.h>

namespace cg = cooperative_groups;

extern "C" __global__ void arrive_and_wait(const float* in, float* out) {
    __shared__ float values[64];
    __shared__ __mbarrier_t barrier;
    if (threadIdx.x == 0) __mbarrier_init(&barrier, 64);
    __syncthreads();
    for (int i = 0; i < 3; ++i) {
        values[threadIdx.x] = in[threadIdx.x] + i;
        __mbarrier_token_t token = __mbarrier_arrive(&barrier);
        while (!__mbarrier_test_wait(&barrier, token)) {
        }
        const float seen = values[63 - threadIdx.x];
        token = __mbarrier_arrive(&barrier);
        while (!__mbarrier_test_wait(&barrier, token)) {
        }
        out[64 * i + threadIdx.x] = seen;
    }
}

#if __CUDA_ARCH__ >= 900
extern "C" __global__ void __cluster_dims__(4) sums(const float* in, float* out) {
    __shared__ float values[64];
    auto cluster = cg::this_cluster();
    values[threadIdx.x] = in[cluster.block_rank() * 64 + threadIdx.x];
    cluster.sync();
    float sum = 0;
    for (unsigned rank = 0; rank < cluster.num_blocks(); ++rank) sum += *cluster.map_shared_rank(&values[threadIdx.x], rank);
    auto token = cluster.barrier_arrive();
    cluster.barrier_wait(static_cast<decltype(token)&&>(token));
    out[cluster.block_rank() * 64 + threadIdx.x] = sum + cluster.block_index().x;
}
#endif
