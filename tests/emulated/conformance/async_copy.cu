// cp.async in its widths with zero fill and its two ways to wait; ldmatrix.
#include "elementwise.cuh"

#define BYTES_1 "4"
#define BYTES_2 "8"
#define BYTES_4 "16"
#define BYTES(words) BYTES_##words
#define COPY(name, cache, words, ...) \
    ARGS(name, "u32*" #words " =u32*" #words " n") \
    SHAPE(name, "threads=128") \
    extern "C" __global__ void name(const u32* a, u32* out, int n) { \
        __shared__ __align__(16) u32 cells[128 * 4]; \
        const u32 at = (u32)__cvta_generic_to_shared(&cells[threadIdx.x * words]); \
        const u32* from = a + (size_t)ELEMENT * words; \
        asm volatile("cp.async." cache ".shared.global" __VA_ARGS__ " [%0], [%1], " BYTES(words) ";" \
                     ::"r"(at), "l"(from) \
                     : "memory"); \
        asm volatile("cp.async.commit_group;\n\tcp.async.wait_group 0;" ::: "memory"); \
        __syncthreads(); \
        for (int k = 0; k < words; k++) out[(size_t)ELEMENT * words + k] = cells[(threadIdx.x ^ 5) * words + k]; \
    }
COPY(cp_async_ca_4, "ca", 1)
COPY(cp_async_ca_8, "ca", 2)
COPY(cp_async_ca_16, "ca", 4)
COPY(cp_async_cg_16, "cg", 4)
COPY(cp_async_ca_4_prefetch, "ca", 1, ".L2::64B")
COPY(cp_async_cg_16_prefetch, "cg", 4, ".L2::256B")
#define COPY_FILL(name, cache, words) \
    ARGS(name, "u32*" #words " lane =u32*" #words " n") \
    SHAPE(name, "threads=128") \
    extern "C" __global__ void name(const u32* a, const lane* size, u32* out, int n) { \
        __shared__ __align__(16) u32 cells[128 * 4]; \
        const u32 at = (u32)__cvta_generic_to_shared(&cells[threadIdx.x * words]); \
        const u32* from = a + (size_t)ELEMENT * words; \
        for (int k = 0; k < words; k++) cells[threadIdx.x * words + k] = 0xdeadbeef; \
        const u32 valid = size[ELEMENT] % (words * 4 + 1); \
        asm volatile("cp.async." cache ".shared.global [%0], [%1], " BYTES(words) ", %2;" \
                     ::"r"(at), "l"(from), "r"(valid) : "memory"); \
        asm volatile("cp.async.wait_all;" ::: "memory"); \
        __syncthreads(); \
        for (int k = 0; k < words; k++) out[(size_t)ELEMENT * words + k] = cells[(threadIdx.x ^ 5) * words + k]; \
    }
COPY_FILL(cp_async_fill_ca_4, "ca", 1)
COPY_FILL(cp_async_fill_ca_8, "ca", 2)
COPY_FILL(cp_async_fill_cg_16, "cg", 4)
ARGS(cp_async_ignore, "u32*4 flag =u32*4 n")
SHAPE(cp_async_ignore, "threads=128")
extern "C" __global__ void cp_async_ignore(const u32* a, const flag* skip, u32* out, int n) {
    __shared__ __align__(16) u32 cells[128 * 4];
    const u32 at = (u32)__cvta_generic_to_shared(&cells[threadIdx.x * 4]);
    const u32 ignore = skip[ELEMENT];
    asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; cp.async.cg.shared.global [%0], [%1], 16, p;}"
                 ::"r"(at), "l"(a + ELEMENT * 4), "r"(ignore) : "memory");
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    for (int k = 0; k < 4; k++) out[(size_t)ELEMENT * 4 + k] = cells[threadIdx.x * 4 + k];
}
// A ring of four stages, two in flight, as pipelined kernels have it.
ARGS(cp_async_ring, "u32 =u32 n")
SHAPE(cp_async_ring, "threads=128 grid=1")
extern "C" __global__ void cp_async_ring(const u32* a, u32* out, int n) {
    __shared__ __align__(16) u32 cells[4][128];
    const int steps = n / 128;
    for (int s = 0; s < 2; s++) {
        const u32 at = (u32)__cvta_generic_to_shared(&cells[s][threadIdx.x]);
        if (s < steps) asm volatile("cp.async.ca.shared.global [%0], [%1], 4;"
                     ::"r"(at), "l"(a + s * 128 + threadIdx.x) : "memory");
        asm volatile("cp.async.commit_group;" ::: "memory");
    }
    u32 sum = 0;
    for (int s = 0; s < steps; s++) {
        const int next = s + 2;
        const u32 at = (u32)__cvta_generic_to_shared(&cells[next & 3][threadIdx.x]);
        if (next < steps) asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 4;"
                     ::"r"(at), "l"(a + next * 128 + threadIdx.x) : "memory");
        asm volatile("cp.async.commit_group;\n\tcp.async.wait_group 2;" ::: "memory");
        __syncthreads();
        sum = sum * 5 + cells[s & 3][127 - threadIdx.x];
    }
    out[threadIdx.x] = sum;
}
#define LDMATRIX(name, count, trans, ...) \
    ARGS(name, "u32*4 =u32*4 n") \
    SHAPE(name, "n=32 threads=32") \
    extern "C" __global__ void name(const u32* a, u32* out, int n) { \
        __shared__ __align__(16) u32 cells[32 * 4]; \
        for (int k = 0; k < 4; k++) cells[threadIdx.x * 4 + k] = a[threadIdx.x * 4 + k]; \
        __syncwarp(); \
        const u32 at = (u32)__cvta_generic_to_shared(&cells[(threadIdx.x ^ 9) * 4]); \
        u32 r[4] = {0, 0, 0, 0}; \
        asm volatile("ldmatrix.sync.aligned.m8n8." count trans ".shared.b16 " __VA_ARGS__ : "r"(at)); \
        for (int k = 0; k < 4; k++) out[threadIdx.x * 4 + k] = r[k]; \
    }
LDMATRIX(ldmatrix_x1, "x1", "", "{%0}, [%1];" : "=r"(r[0]))
LDMATRIX(ldmatrix_x2, "x2", "", "{%0, %1}, [%2];" : "=r"(r[0]), "=r"(r[1]))
LDMATRIX(ldmatrix_x4, "x4", "", "{%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]))
LDMATRIX(ldmatrix_x1_trans, "x1", ".trans", "{%0}, [%1];" : "=r"(r[0]))
LDMATRIX(ldmatrix_x2_trans, "x2", ".trans", "{%0, %1}, [%2];" : "=r"(r[0]), "=r"(r[1]))
LDMATRIX(ldmatrix_x4_trans, "x4", ".trans", "{%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]))
KERNEL1(movmatrix, u32, u32, asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r) : "r"(x)))
#if __CUDA_ARCH__ >= 900
ARGS(stmatrix_x4, "u32*4 =u32*4 n")
SHAPE(stmatrix_x4, "n=32 threads=32")
extern "C" __global__ void stmatrix_x4(const u32* a, u32* out, int n) {
    __shared__ __align__(16) u32 cells[32 * 4];
    const u32 at = (u32)__cvta_generic_to_shared(&cells[(threadIdx.x ^ 9) * 4]);
    const u32* v = a + threadIdx.x * 4;
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                 ::"r"(at), "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3]) : "memory");
    __syncwarp();
    for (int k = 0; k < 4; k++) out[threadIdx.x * 4 + k] = cells[threadIdx.x * 4 + k];
}
ARGS(stmatrix_x2_trans, "u32*4 =u32*4 n")
SHAPE(stmatrix_x2_trans, "n=32 threads=32")
extern "C" __global__ void stmatrix_x2_trans(const u32* a, u32* out, int n) {
    __shared__ __align__(16) u32 cells[32 * 4];
    for (int k = 0; k < 4; k++) cells[threadIdx.x * 4 + k] = 0;
    __syncwarp();
    const u32 at = (u32)__cvta_generic_to_shared(&cells[(threadIdx.x ^ 9) * 4]);
    const u32* v = a + threadIdx.x * 4;
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};"
                 ::"r"(at), "r"(v[0]), "r"(v[1]) : "memory");
    __syncwarp();
    for (int k = 0; k < 4; k++) out[threadIdx.x * 4 + k] = cells[threadIdx.x * 4 + k];
}
#endif
