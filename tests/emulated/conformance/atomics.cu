// Atomic operations on global and shared memory. Every cell is touched by threads whose order does not change what
// memory holds at the end; returned values are kept only where one thread touches a cell.
#include "elementwise.cuh"

// ALONE: a cell for each thread. MANY: threads share 16 cells.
#define GLOBAL_ALONE(name, op, T) \
    KERNEL3_TIMES(name, 2, T, T, T, T, \
            { T* cell = (T*)&out[n + i]; *cell = x; (void)z; \
              asm volatile(op " %0, [%1], %2;" : "=" REG_##T(r) : "l"(cell), REG_##T(y) : "memory"); })
#define GLOBAL_MANY(name, op, T) \
    ARGS(name, #T " +" #T ":16 n") \
    extern "C" __global__ void name(const T* a, T* cells_of_all, int n) { \
        const int i = ELEMENT; \
        if (i < n) asm volatile(op " [%0], %1;" ::"l"(&cells_of_all[i & 15]), REG_##T(a[i]) : "memory"); \
    }
#define SHARED_ALONE(name, op, T) \
    KERNEL3_TIMES(name, 2, T, T, T, T, \
            { __shared__ T cells[256]; cells[threadIdx.x] = x; (void)z; T after; \
              const u32 at = (u32)__cvta_generic_to_shared(&cells[threadIdx.x]); \
              asm volatile(op " %0, [%1], %2;" : "=" REG_##T(r) : "r"(at), REG_##T(y) : "memory"); \
              after = cells[threadIdx.x]; out[n + i] = after; })
#define SHARED_MANY(name, op, T) \
    ARGS(name, #T " +" #T ":16 n") \
    SHAPE(name, "n=256") \
    extern "C" __global__ void name(const T* a, T* cells_of_all, int n) { \
        __shared__ T cells[16]; \
        const int i = ELEMENT; \
        if (threadIdx.x < 16) cells[threadIdx.x] = cells_of_all[threadIdx.x]; \
        __syncthreads(); \
        const u32 at = (u32)__cvta_generic_to_shared(&cells[threadIdx.x & 15]); \
        if (i < n) asm volatile(op " [%0], %1;" ::"r"(at), REG_##T(a[i]) : "memory"); \
        __syncthreads(); \
        if (threadIdx.x < 16) cells_of_all[threadIdx.x] = cells[threadIdx.x]; \
    }
#define RED_ALONE(name, op, T) \
    KERNEL2(name, T, T, T, { T* cell = (T*)&out[i]; *cell = x; \
                             asm volatile(op " [%0], %1;" ::"l"(cell), REG_##T(y) : "memory"); r = *cell; })
#define EVERYWHERE(op, type, T) \
    GLOBAL_ALONE(atom_global_##op##_##type, "atom.global." #op "." #type, T) \
    GLOBAL_MANY(red_global_##op##_##type, "red.global." #op "." #type, T) \
    SHARED_ALONE(atom_shared_##op##_##type, "atom.shared." #op "." #type, T) \
    SHARED_MANY(red_shared_##op##_##type, "red.shared." #op "." #type, T)
EVERYWHERE(add, u32, u32)
EVERYWHERE(add, u64, u64)
EVERYWHERE(min, u32, u32)
EVERYWHERE(min, s32, s32)
EVERYWHERE(max, u32, u32)
EVERYWHERE(max, s32, s32)
EVERYWHERE(min, u64, u64)
EVERYWHERE(min, s64, s64)
EVERYWHERE(max, u64, u64)
EVERYWHERE(max, s64, s64)
EVERYWHERE(and, b32, u32)
EVERYWHERE(or, b32, u32)
EVERYWHERE(xor, b32, u32)
EVERYWHERE(and, b64, u64)
EVERYWHERE(or, b64, u64)
EVERYWHERE(xor, b64, u64)
GLOBAL_ALONE(atom_global_inc_u32, "atom.global.inc.u32", u32)
GLOBAL_ALONE(atom_global_dec_u32, "atom.global.dec.u32", u32)
SHARED_ALONE(atom_shared_inc_u32, "atom.shared.inc.u32", u32)
SHARED_ALONE(atom_shared_dec_u32, "atom.shared.dec.u32", u32)
GLOBAL_ALONE(atom_global_exch_b32, "atom.global.exch.b32", u32)
GLOBAL_ALONE(atom_global_exch_b64, "atom.global.exch.b64", u64)
SHARED_ALONE(atom_shared_exch_b32, "atom.shared.exch.b32", u32)
SHARED_ALONE(atom_shared_exch_b64, "atom.shared.exch.b64", u64)
GLOBAL_ALONE(atom_global_add_f32, "atom.global.add.f32", f32)
GLOBAL_ALONE(atom_global_add_f64, "atom.global.add.f64", f64)
GLOBAL_ALONE(atom_global_add_noftz_f16x2, "atom.global.add.noftz.f16x2", f16x2)
#if __CUDA_ARCH__ >= 900
GLOBAL_ALONE(atom_global_add_noftz_bf16x2, "atom.global.add.noftz.bf16x2", bf16x2)
#endif
SHARED_ALONE(atom_shared_add_f32, "atom.shared.add.f32", f32)
SHARED_ALONE(atom_shared_add_f64, "atom.shared.add.f64", f64)
SHARED_ALONE(atom_shared_add_noftz_f16x2, "atom.shared.add.noftz.f16x2", f16x2)
#define CAS(name, space, type, T, pointer, letter) \
    KERNEL3_TIMES(name, 2, T, T, T, T, \
            { __shared__ T cells[256]; T* cell = &cells[threadIdx.x]; if (pointer) cell = (T*)&out[n + i]; *cell = x; \
              asm volatile("atom" space ".cas." type " %0, [%1], %2, %3;" \
                           : "=" letter(r) : "l"(cell), letter(y), letter(z) : "memory"); \
              out[n + i] = *cell; })
CAS(atom_global_cas_b32, ".global", "b32", u32, true, "r")
CAS(atom_global_cas_b64, ".global", "b64", u64, true, "l")
CAS(atom_generic_cas_b32, "", "b32", u32, (x & 1) != 0, "r")
KERNEL3_TIMES(atom_shared_cas_b32, 2, u32, small, small, u32,
        { __shared__ u32 cells[256]; cells[threadIdx.x] = x;
          r = atomicCAS(&cells[threadIdx.x], y, z); out[n + i] = cells[threadIdx.x]; })
KERNEL3_TIMES(atom_shared_cas_b64, 2, u64, small, small, u64,
        { __shared__ u64 cells[256]; cells[threadIdx.x] = x;
          r = atomicCAS(&cells[threadIdx.x], (u64)y, z); out[n + i] = cells[threadIdx.x]; })
KERNEL3_TIMES(atom_generic_add_u32, 2, u32, u32, u32, u32,
        { __shared__ u32 cells[256]; u32* cell = (z & 1) ? &cells[threadIdx.x] : (u32*)&out[n + i]; *cell = x;
          r = atomicAdd(cell, y); out[n + i] = *cell; })
KERNEL3_TIMES(atom_generic_add_f32, 2, f32, f32, f32, u32,
        { __shared__ f32 cells[256]; f32* cell = (z & 1) ? &cells[threadIdx.x] : (f32*)&out[n + i]; *cell = x;
          r = atomicAdd(cell, y); out[n + i] = *cell; })
RED_ALONE(red_global_add_f32, "red.global.add.f32", f32)
RED_ALONE(red_global_add_f64, "red.global.add.f64", f64)
RED_ALONE(red_global_add_noftz_f16x2, "red.global.add.noftz.f16x2", f16x2)
RED_ALONE(red_relaxed_cta, "red.relaxed.cta.global.add.u32", u32)
RED_ALONE(red_release_sys, "red.release.sys.global.or.b32", u32)
RED_ALONE(red_generic_add_u64, "red.add.u64", u64)
RED_ALONE(red_generic_min_s32, "red.min.s32", s32)
// All lanes add to one cell: the compiler counts them first and lets one lane add.
ARGS(red_aggregated, "flag +u32:1 n")
extern "C" __global__ void red_aggregated(const flag* a, u32* counter, int n) {
    if (ELEMENT < n && a[ELEMENT]) atomicAdd(counter, 1u);
}
ARGS(red_aggregated_sum, "u32 +u32:2 n")
extern "C" __global__ void red_aggregated_sum(const u32* a, u32* counters, int n) {
    atomicAdd(counters, a[ELEMENT]);
    atomicMax(counters + 1, a[ELEMENT]);
}
// With one bound for all, the order does not matter.
ARGS(red_global_inc_u32, "=u32:16 n")
extern "C" __global__ void red_global_inc_u32(u32* counters, int n) {
    if (ELEMENT < n) asm volatile("red.global.inc.u32 [%0], %1;" ::"l"(&counters[ELEMENT & 15]), "r"(20u) : "memory");
}
// The compiler's own instruction for counting.
ARGS(atom_shared_count, "u32 =u32:16 n")
SHAPE(atom_shared_count, "n=256")
extern "C" __global__ void atom_shared_count(const u32* a, u32* out, int n) {
    __shared__ u32 cells[16];
    if (threadIdx.x < 16) cells[threadIdx.x] = a[threadIdx.x];
    __syncthreads();
    if (ELEMENT < n) atomicAdd(&cells[a[ELEMENT] & 15], 1u);
    __syncthreads();
    if (threadIdx.x < 16) out[threadIdx.x] = cells[threadIdx.x];
}
KERNEL3_TIMES(atom_global_scopes, 2, u32, u32, u32, u32,
        { u32* cell = (u32*)&out[n + i]; *cell = x; u32 s; u32 t;
          asm volatile("atom.acq_rel.cta.global.add.u32 %0, [%1], %2;" : "=r"(r) : "l"(cell), "r"(y) : "memory");
          asm volatile("atom.acquire.sys.global.or.b32 %0, [%1], %2;" : "=r"(s) : "l"(cell), "r"(z) : "memory");
          asm volatile("atom.release.gpu.global.exch.b32 %0, [%1], %2;" : "=r"(t) : "l"(cell), "r"(y) : "memory");
          r ^= s * 3 + t; })
