// Asynchronous copies into shared memory and the tensor cores' instructions.
#include <cuda_fp16.h>
#include <mma.h>

extern "C" {

__global__ void wmma_loop(const half *a, const half *b, float *c, int depth) {
    using namespace nvcuda::wmma;
    fragment<matrix_a, 16, 16, 16, half, row_major> left;
    fragment<matrix_b, 16, 16, 16, half, col_major> right;
    fragment<accumulator, 16, 16, 16, float> sum;
    fill_fragment(sum, 0.f);
    #pragma unroll 1
    for (int k = 0; k < depth; k += 16) {
        load_matrix_sync(left, a + k, 64);
        load_matrix_sync(right, b + k, 64);
        mma_sync(sum, left, right, sum);
    }
    store_matrix_sync(c, sum, 16, mem_row_major);
}

#if __CUDA_ARCH__ >= 800
__global__ void copies(const float *g, float *o) {
    __shared__ __align__(16) float s[256];
    unsigned a = __cvta_generic_to_shared(s + threadIdx.x * 4);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n cp.async.commit_group;" ::"r"(a), "l"(g + threadIdx.x * 4));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n cp.async.commit_group;\n cp.async.wait_group 1;"
                 ::"r"(a + 512), "l"(g + threadIdx.x * 4 + 2), "r"(threadIdx.x & 4));
    asm volatile("cp.async.wait_all;");
    __syncthreads();
    o[threadIdx.x] = s[threadIdx.x];
}

__global__ void matrices(float *o) {
    __shared__ __align__(16) half s[2048];
    s[threadIdx.x] = (half)o[threadIdx.x];
    __syncthreads();
    unsigned at = __cvta_generic_to_shared(s + threadIdx.x * 8), a0, a1, a2, a3, b0, b1, rounded;
    float c0 = 0, c1 = 0, c2 = 0, c3 = 0;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a0), "=r"(a1), "=r"(a2), "=r"(a3) : "r"(at));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(b0), "=r"(b1) : "r"(at + 64));
#define MMA(SHAPE) \
    asm volatile("mma.sync.aligned." SHAPE " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
                 : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1))
    MMA("m16n8k16.row.col.f32.f16.f16.f32");
    MMA("m16n8k8.row.col.f32.tf32.tf32.f32");
    MMA("m16n8k16.row.col.f32.bf16.bf16.f32");
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(c1));
    o[threadIdx.x] = c0 + c1 + c2 + c3 + rounded;
}
#endif

}
