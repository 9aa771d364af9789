// Loads and stores of every width in every space; cache hints; constants by index; local arrays; linear textures.
#include "elementwise.cuh"

#define LOAD(name, space, type, R, letter) \
    KERNEL1(name, R, R, { (void)x; const void* p = (const char*)a + sizeof(R) * i; \
                          asm volatile("ld" space "." type " %0, [%1];" : "=" letter(r) : "l"(p)); })
LOAD(ld_global_u8, ".global", "u8", u32, "r")
LOAD(ld_global_s8, ".global", "s8", u32, "r")
LOAD(ld_global_u16, ".global", "u16", u32, "r")
LOAD(ld_global_s16, ".global", "s16", u32, "r")
LOAD(ld_global_u32, ".global", "u32", u32, "r")
LOAD(ld_global_u64, ".global", "u64", u64, "l")
LOAD(ld_global_nc_u8, ".global.nc", "u8", u32, "r")
LOAD(ld_global_nc_s16, ".global.nc", "s16", u32, "r")
LOAD(ld_global_nc_u32, ".global.nc", "u32", u32, "r")
LOAD(ld_global_nc_u64, ".global.nc", "u64", u64, "l")
LOAD(ld_global_ca, ".global.ca", "u32", u32, "r")
LOAD(ld_global_cg, ".global.cg", "u32", u32, "r")
LOAD(ld_global_cs, ".global.cs", "u32", u32, "r")
LOAD(ld_global_lu, ".global.lu", "u32", u32, "r")
LOAD(ld_global_cv, ".global.cv", "u32", u32, "r")
LOAD(ld_volatile_global, ".volatile.global", "u32", u32, "r")
LOAD(ld_relaxed_gpu, ".relaxed.gpu.global", "u32", u32, "r")
LOAD(ld_acquire_cta, ".acquire.cta.global", "u32", u32, "r")
LOAD(ld_acquire_gpu, ".acquire.gpu.global", "u32", u32, "r")
LOAD(ld_acquire_sys, ".acquire.sys.global", "u32", u32, "r")
LOAD(ld_evict_first, ".global.L1::evict_first", "u32", u32, "r")
LOAD(ld_no_allocate, ".global.L1::no_allocate", "u32", u32, "r")
LOAD(ld_prefetch_128, ".global.L2::128B", "u32", u32, "r")
LOAD(ld_volatile_global_u64, ".volatile.global", "u64", u64, "l")
LOAD(ld_relaxed_sys_u64, ".relaxed.sys.global", "u64", u64, "l")
LOAD(ld_relaxed_cta_s16, ".relaxed.cta.global", "s16", u32, "r")
LOAD(ld_acquire_gpu_u8, ".acquire.gpu.global", "u8", u32, "r")
LOAD(ld_prefetch_64, ".global.L2::64B", "u32", u32, "r")
LOAD(ld_prefetch_256, ".global.L2::256B", "u32", u32, "r")
LOAD(ld_evict_last, ".global.L1::evict_last", "u32", u32, "r")
LOAD(ld_generic_volatile, ".volatile", "u32", u32, "r")
LOAD(ld_generic_acquire, ".acquire.sys", "u64", u64, "l")
LOAD(ld_generic_u8, "", "u8", u32, "r")
LOAD(ld_generic_s16, "", "s16", u32, "r")
LOAD(ld_generic_u64, "", "u64", u64, "l")

ARGS(ld_global_v4, "u32*4 =u32*4 n")
extern "C" __global__ void ld_global_v4(const uint4* a, uint4* out, int n) {
    if (ELEMENT < n) { const uint4 v = a[ELEMENT]; out[ELEMENT] = make_uint4(v.w, v.z + 1, v.y, v.x); }
}
ARGS(ld_global_v2, "u32*2 =u32*2 n")
extern "C" __global__ void ld_global_v2(const uint2* a, uint2* out, int n) {
    if (ELEMENT < n) { const uint2 v = a[ELEMENT]; out[ELEMENT] = make_uint2(v.y, v.x); }
}
ARGS(ld_global_nc_v4, "u32*4 =u32*4 n")
extern "C" __global__ void ld_global_nc_v4(const uint4* __restrict__ a, uint4* __restrict__ out, int n) {
    if (ELEMENT < n) { const uint4 v = __ldg(a + ELEMENT); out[ELEMENT] = make_uint4(v.w, v.z + 1, v.y, v.x); }
}
#define STORE(name, space, type, letter, T) \
    ARGS(name, #T " =" #T " n") \
    extern "C" __global__ void name(const T* a, T* out, int n) { \
        const int i = ELEMENT; \
        if (i < n) { out[i] = (T)0x5a5a5a5a5a5a5a5aull; \
                     asm volatile("st" space "." type " [%0], %1;" ::"l"(out + i), letter(a[i]) : "memory"); } \
    }
STORE(st_global_u8, ".global", "u8", "r", u32)
STORE(st_global_u16, ".global", "u16", "r", u32)
STORE(st_global_u32, ".global", "u32", "r", u32)
STORE(st_global_u64, ".global", "u64", "l", u64)
STORE(st_global_wb, ".global.wb", "u32", "r", u32)
STORE(st_global_cg, ".global.cg", "u32", "r", u32)
STORE(st_global_cs, ".global.cs", "u32", "r", u32)
STORE(st_global_wt, ".global.wt", "u32", "r", u32)
STORE(st_volatile, ".volatile.global", "u32", "r", u32)
STORE(st_relaxed_gpu, ".relaxed.gpu.global", "u32", "r", u32)
STORE(st_release_cta, ".release.cta.global", "u32", "r", u32)
STORE(st_release_gpu, ".release.gpu.global", "u32", "r", u32)
STORE(st_release_sys, ".release.sys.global", "u32", "r", u32)
STORE(st_volatile_u64, ".volatile.global", "u64", "l", u64)
STORE(st_relaxed_sys_u64, ".relaxed.sys.global", "u64", "l", u64)
STORE(st_relaxed_cta_u8, ".relaxed.cta.global", "u8", "r", u32)
STORE(st_evict_last, ".global.L1::evict_last", "u32", "r", u32)
STORE(st_no_allocate, ".global.L1::no_allocate", "u32", "r", u32)
STORE(st_generic_volatile, ".volatile", "u32", "r", u32)
STORE(st_generic_release, ".release.gpu", "u64", "l", u64)
STORE(st_generic_u16, "", "u16", "r", u32)
STORE(st_generic_u64, "", "u64", "l", u64)

// Shared memory: thread i writes its own 16 bytes by one width and reads its neighbour's by another.
#define SHARED(name, S, L, R, times) \
    ARGS(name, #S " =" #R "*" #times " n") \
    extern "C" __global__ void name(const S* a, R* out, int n) { \
        __shared__ __align__(16) char cells[256 * 16]; \
        const int i = ELEMENT; \
        const int per = 16 / (int)sizeof(S); \
        for (int k = 0; k < per; k++) \
            ((S*)cells)[threadIdx.x * per + k] = i < n ? (S)a[i + k * 3 < n ? i + k * 3 : k] : (S)0; \
        __syncthreads(); \
        const L* from = (const L*)(cells + 16 * (threadIdx.x ^ 1)); \
        if (i < n) for (int k = 0; k < 16 / (int)sizeof(L); k++) out[i * (16 / (int)sizeof(L)) + k] = (R)from[k]; \
    }
SHARED(shared_u8_to_u16, u8, u16, u32, 8)
SHARED(shared_u16_to_s8, u16, s8, u32, 16)
SHARED(shared_u32_to_s16, u32, s16, u32, 8)
SHARED(shared_u64_to_u8, u64, u8, u32, 16)
SHARED(shared_u32_to_u64, u32, u64, u64, 2)
SHARED(shared_u64_to_u32, u64, u32, u32, 4)
// One width each, spelt out: the compiler would join neighbours.
#define SHARED_LOAD(name, type, R, letter) \
    KERNEL1(name, R, R, { __shared__ R cells[256]; cells[threadIdx.x] = x; __syncwarp(); \
                          const u32 at = (u32)__cvta_generic_to_shared(&cells[threadIdx.x ^ 1]); \
                          asm volatile("ld.shared." type " %0, [%1];" : "=" letter(r) : "r"(at)); })
SHARED_LOAD(ld_shared_u8, "u8", u32, "r")
SHARED_LOAD(ld_shared_s8, "s8", u32, "r")
SHARED_LOAD(ld_shared_u16, "u16", u32, "r")
SHARED_LOAD(ld_shared_s16, "s16", u32, "r")
SHARED_LOAD(ld_shared_u32, "u32", u32, "r")
SHARED_LOAD(ld_shared_u64, "u64", u64, "l")
#define SHARED_STORE(name, type, R, letter) \
    KERNEL1(name, R, R, { __shared__ R cells[256]; cells[threadIdx.x] = (R)0x5a5a5a5a5a5a5a5aull; \
                          const u32 at = (u32)__cvta_generic_to_shared(&cells[threadIdx.x]); \
                          asm volatile("st.shared." type " [%0], %1;" ::"r"(at), letter(x) : "memory"); \
                          r = cells[threadIdx.x]; })
SHARED_STORE(st_shared_u8, "u8", u32, "r")
SHARED_STORE(st_shared_u16, "u16", u32, "r")
SHARED_STORE(st_shared_u32, "u32", u32, "r")
SHARED_STORE(st_shared_u64, "u64", u64, "l")
ARGS(ld_relaxed_v4, "u32*4 =u32*4 n")
extern "C" __global__ void ld_relaxed_v4(const u32* a, u32* out, int n) {
    const int i = ELEMENT * 4;
    u32 v[4];
    if (ELEMENT >= n) return;
    asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]) : "l"(a + i));
    asm volatile("st.relaxed.gpu.global.v4.u32 [%0], {%1, %2, %3, %4};"
                 ::"l"(out + i), "r"(v[3]), "r"(v[2]), "r"(v[1]), "r"(v[0]) : "memory");
}
ARGS(ld_volatile_v2, "u32*2 =u32*2 n")
extern "C" __global__ void ld_volatile_v2(const u32* a, u32* out, int n) {
    const int i = ELEMENT * 2;
    u32 v[2];
    if (ELEMENT >= n) return;
    asm volatile("ld.volatile.global.v2.u32 {%0, %1}, [%2];" : "=r"(v[0]), "=r"(v[1]) : "l"(a + i));
    asm volatile("st.volatile.global.v2.u32 [%0], {%1, %2};" ::"l"(out + i), "r"(v[1]), "r"(v[0]) : "memory");
}
ARGS(shared_v4, "u32*4 =u32*4 n")
extern "C" __global__ void shared_v4(const uint4* a, uint4* out, int n) {
    __shared__ uint4 cells[256];
    if (ELEMENT < n) cells[threadIdx.x] = a[ELEMENT];
    __syncthreads();
    if (ELEMENT < n) { const uint4 v = cells[threadIdx.x ^ 3]; out[ELEMENT] = make_uint4(v.w, v.x, v.z, v.y); }
}
extern __shared__ u32 dynamic_cells[];
ARGS(shared_dynamic, "u32 =u32 n")
SHAPE(shared_dynamic, "shared=1024")
extern "C" __global__ void shared_dynamic(const u32* a, u32* out, int n) {
    __shared__ u32 fixed[33];
    if (threadIdx.x < 33) fixed[threadIdx.x] = 7;
    dynamic_cells[threadIdx.x] = ELEMENT < n ? a[ELEMENT] : 0;
    __syncthreads();
    if (ELEMENT < n) out[ELEMENT] = dynamic_cells[blockDim.x - 1 - threadIdx.x] + fixed[threadIdx.x % 32];
}

__constant__ u32 table[64] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3,
                                2, 3, 8, 4, 6, 2, 6, 4, 3, 3, 8, 3, 2, 7, 9, 5};
__constant__ u8 byte_table[64] = {200, 201, 202, 203, 4, 5, 6, 7, 8, 9, 10, 11};
__constant__ f64 wide_table[16] = {0.5, -1.25, 3.0, 1e300};
KERNEL1(constant_by_index, u32, u32, r = table[x & 63])
KERNEL1(constant_bytes, s32, u32, r = (s8)byte_table[x & 63] + byte_table[(x >> 8) & 63])
KERNEL1(constant_wide, f64, u32, r = wide_table[x & 15])
KERNEL1(constant_vector, u32, u32, const uint4 v = ((const uint4*)table)[x & 15]; r = v.x + v.y * 3 + v.z * 5 + v.w * 7)
KERNEL1(constant_direct, u32, u32, r = x * table[5] + table[63] + table[2])
__device__ u32 device_table[8] = {11, 22, 33, 44, 55, 66, 77, 88};
KERNEL1(global_variable, u32, u32, r = device_table[x & 7])

// Parameters of every width: loads from the constant bank, signed and unsigned.
ARGS(parameters_of_all_widths, "u32 u8:= s8:= u16:= s16:= u32:= u64:= f32:= f64:= =u32 n")
extern "C" __global__ void parameters_of_all_widths(const u32* a, u8 p, s8 q, u16 s, s16 t, u32 u, u64 v, f32 w, f64 d,
                                                    u32* out, int n) {
    const int i = ELEMENT;
    if (i < n) out[i] = a[i] * p + (u32)q * s + (u32)(t * 3) + (u ^ (u32)(v >> 7)) +
                        __float_as_uint(w) + (u32)__double2hiint(d);
}

ARGS(local_array, "u32 =u32 n")
extern "C" __global__ void local_array(const u32* a, u32* out, int n) {
    const int i = ELEMENT;
    u32 mine[19];
    for (int k = 0; k < 19; k++) mine[k] = a[(i + k * 7) % n];
    for (int k = 0; k < 40; k++) mine[(mine[k % 19] + (u32)k) % 19] += mine[(k * 5 + i) % 19] * 3;
    u32 sum = 0;
    for (int k = 0; k < 19; k++) sum = sum * 31 + mine[k];
    if (i < n) out[i] = sum;
}
ARGS(local_bytes, "u32 =u32 n")
extern "C" __global__ void local_bytes(const u32* a, u32* out, int n) {
    const int i = ELEMENT;
    u8 mine[32];
    for (int k = 0; k < 32; k++) mine[k] = (u8)(a[(i + k) % n] >> (k & 7));
    for (int k = 0; k < 32; k++) mine[(mine[k] + k) & 31] ^= (u8)(k * 7);
    u64 wide[4];
    for (int k = 0; k < 4; k++) wide[k] = 0;
    for (int k = 0; k < 32; k++) wide[mine[k] & 3] += (u64)mine[k] << (k & 31);
    if (i < n) out[i] = (u32)(wide[0] ^ wide[1] * 3 ^ wide[2] * 5 ^ (wide[3] >> 11));
}
ARGS(local_signed, "u32 =s32 n")
extern "C" __global__ void local_signed(const u32* a, s32* out, int n) {
    const int i = ELEMENT;
    s8 bytes[24];
    s16 shorts[24];
    for (int k = 0; k < 24; k++) {
        bytes[k] = (s8)(a[(i + k) % n] >> (k & 3));
        shorts[k] = (s16)(a[(i + k * 3) % n] >> (k & 7));
    }
    s32 sum = 0;
    for (int k = 0; k < 24; k++) sum = sum * 7 + bytes[(u32)(shorts[k] + k) % 24] - shorts[(u32)(bytes[k] + k) % 24];
    if (i < n) out[i] = sum;
}
ARGS(generic_addresses, "u32 =u32 n")
extern "C" __global__ void generic_addresses(const u32* a, u32* out, int n) {
    __shared__ u32 cells[256];
    u32 mine[4] = {1, 2, 3, 4};
    const int i = ELEMENT;
    cells[threadIdx.x] = a[i] * 5;
    mine[a[i] & 3] = a[i];
    const u32* from = (a[i] & 12) == 0 ? &cells[threadIdx.x] : (a[i] & 4) ? &mine[(a[i] >> 8) & 3] : &a[(i * 3) % n];
    out[i] = *from + (__isShared(from) ? 1000 : 0) + (__isLocal(from) ? 2000 : 0) + (__isGlobal(from) ? 4000 : 0);
}
KERNEL1(address_spaces, u32, u32,
        { __shared__ u32 cells[256]; cells[threadIdx.x] = x; u64 generic;
          u32 at = (u32)__cvta_generic_to_shared(&cells[threadIdx.x]);
          asm volatile("{.reg .u64 t; cvt.u64.u32 t, %1; cvta.shared.u64 %0, t;}" : "=l"(generic) : "r"(at));
          r = *(u32*)generic + 1; })

// tex1Dfetch from linear memory; indices outside give zero.
ARGS(texture_linear, "@f32 index =f32 n")
extern "C" __global__ void texture_linear(u64 texture, const s32* a, f32* out, int n) {
    const int i = ELEMENT;
    f32 v[4];
    asm volatile("tex.1d.v4.f32.s32 {%0, %1, %2, %3}, [%4, {%5}];"
                 : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]) : "l"(texture), "r"(a[i]));
    if (i < n) out[i] = v[0];
}
ARGS(texture_linear_v4, "@f32*4 index =f32*4 n")
extern "C" __global__ void texture_linear_v4(u64 texture, const s32* a, float4* out, int n) {
    const int i = ELEMENT;
    f32 v[4];
    asm volatile("tex.1d.v4.f32.s32 {%0, %1, %2, %3}, [%4, {%5}];"
                 : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]) : "l"(texture), "r"(a[i]));
    if (i < n) out[i] = make_float4(v[0], v[1], v[2], v[3]);
}
KERNEL1(fences, u32, u32,
        { out[i] = x; __threadfence(); __threadfence_block(); __threadfence_system(); r = ((volatile u32*)out)[i] + 1;
          asm volatile("fence.acq_rel.gpu;" ::: "memory"); asm volatile("fence.sc.sys;" ::: "memory"); })
KERNEL1(prefetches, u32, u32,
        { asm volatile("prefetch.global.L2 [%0];" ::"l"(a + i)); asm volatile("prefetch.global.L1 [%0];" ::"l"(a + i));
          asm volatile("discard.global.L2 [%0], 128;" ::"l"((u64)(out + i) & ~127ull)); r = x; })
