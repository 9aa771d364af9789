// Values that are the same for the whole warp, so that the compiler computes them in uniform registers.
#include "elementwise.cuh"

// Every step on values that the compiler knows to be the same in all threads: sixteen of them, three at a time.
#define UNIFORM(name, ...) \
    ARGS(name, "u32:=*16 =u32*16 n") \
    SHAPE(name, "n=32 threads=32") \
    extern "C" __global__ void name(u32 p0, u32 p1, u32 p2, u32 p3, u32 p4, u32 p5, u32 p6, u32 p7, u32 p8, u32 p9, \
                                    u32 p10, u32 p11, u32 p12, u32 p13, u32 p14, u32 p15, u32* out, int n) { \
        const u32 p[16] = {p0, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14, p15}; \
        _Pragma("unroll") for (int k = 0; k < 16; k++) { \
            const u32 x = p[k]; \
            const u32 y = p[(k * 5 + 3) & 15]; \
            const u32 z = p[(k * 3 + 7) & 15]; \
            u32 r; \
            __VA_ARGS__; \
            (void)y; \
            (void)z; \
            if ((int)threadIdx.x < n) out[k * n + (int)threadIdx.x] = r + threadIdx.x; \
        } \
    }

UNIFORM(uniform_add, r = x + y - z)
UNIFORM(uniform_multiply, r = x * y + z)
UNIFORM(uniform_multiply_wide, u64 w = (u64)x * y + z; r = (u32)(w >> 32) ^ (u32)w)
UNIFORM(uniform_multiply_signed, s64 w = (s64)(s32)x * (s32)y; r = (u32)(w >> 32) ^ (u32)w)
UNIFORM(uniform_logic, r = (x & y) ^ (~z | x))
UNIFORM(uniform_shift, r = (x << (y & 31)) ^ (z >> (x & 31)) ^ (u32)((s32)z >> (y & 31)))
UNIFORM(uniform_shift_wide, u64 w = ((u64)x << 32 | y); w = w << (z & 63) ^ w >> (x & 63); r = (u32)(w >> 32) ^ (u32)w)
UNIFORM(uniform_select, r = (s32)x < (s32)y ? z : x + 3)
UNIFORM(uniform_compare, r = (x < y) + 2 * ((s32)x >= (s32)z && y != z) + 4 * (((u64)x << 32 | y) > ((u64)z << 32 | x)))
UNIFORM(uniform_minimum, r = min(x, y) ^ max((s32)y, (s32)z))
UNIFORM(uniform_bits, r = __popc(x) + __clz(y) * 64 + __brev(z) * 3)
UNIFORM(uniform_count, r = (u32)__popc((int)(x ^ y)))
UNIFORM(uniform_shift_64, u64 w = ((u64)x << 32 | y) << 6; r = (u32)(w >> 32) ^ (u32)w)
UNIFORM(uniform_three_sums,
        u64 w = ((u64)x << 32 | y) + ((u64)y << 32 | z) + ((u64)z << 32 | x); r = (u32)(w >> 32) ^ (u32)w)
UNIFORM(uniform_predicates, r = (x < y && (y > z || x == 7)) ? x : y + 1)
UNIFORM(uniform_clamp, r = (u32)min(max((s32)x, -100), 1000))
UNIFORM(uniform_permute, r = __byte_perm(x, y, 0x2461) ^ __byte_perm(y, z, x & 0x7777))
UNIFORM(uniform_address, u64 w = ((u64)z << 32 | x) + (u64)y * 8; r = (u32)(w >> 32) ^ (u32)w)
UNIFORM(uniform_address_signed, u64 w = ((u64)z << 32 | x) + (s64)(s32)y * 4; r = (u32)(w >> 32) ^ (u32)w)
UNIFORM(uniform_divide, r = x / (y | 1) + z % 7)
UNIFORM(uniform_field, asm("bfe.s32 %0, %1, 5, 9;" : "=r"(r) : "r"(x)); r ^= 1u << (y & 31))
UNIFORM(uniform_carry,
        u64 w = ((u64)x << 32 | y) + ((u64)y << 32 | z) - ((u64)z << 32 | x); r = (u32)(w >> 32) ^ (u32)w)
UNIFORM(uniform_absolute, r = abs((s32)x) + abs((s32)(y - z)))
UNIFORM(uniform_float, r = __float_as_uint(__uint_as_float(x) * __uint_as_float(y) + __uint_as_float(z)))

// Uniform control: a loop whose bounds all threads share, and values that come from the block's index.
ARGS(uniform_loop, "u32 =u32 n")
extern "C" __global__ void uniform_loop(const u32* a, u32* out, int n) {
    u32 sum = 0;
    for (int k = (int)blockIdx.x; k < n; k += (int)gridDim.x) sum = sum * 3 + a[k] + (u32)k * blockIdx.x;
    out[ELEMENT] = sum + threadIdx.x;
}
__constant__ u32 uniform_table[64] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3};
ARGS(uniform_constant_index, "u32 =u32 n")
SHAPE(uniform_constant_index, "threads=32")
extern "C" __global__ void uniform_constant_index(const u32* a, u32* out, int n) {
    const u32 at = blockIdx.x & 63;
    u32 value = uniform_table[at] * uniform_table[at ^ 1] + uniform_table[a[0] & 63];
    if (uniform_table[at] > 4) value ^= 0xff00;
    out[ELEMENT] = value + threadIdx.x + (u32)n;
}
ARGS(special_registers, "=u32*8 n")
SHAPE(special_registers, "n=384 threads=4x3x8 grid=2x2x1")
extern "C" __global__ void special_registers(u32* out, int n) {
    u32 r[8];
    asm("mov.u32 %0, %%laneid;" : "=r"(r[0]));
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(r[1]));
    asm("mov.u32 %0, %%lanemask_le;" : "=r"(r[2]));
    asm("mov.u32 %0, %%lanemask_gt;" : "=r"(r[3]));
    asm("mov.u32 %0, %%lanemask_ge;" : "=r"(r[4]));
    asm("mov.u32 %0, %%lanemask_eq;" : "=r"(r[5]));
    r[6] = threadIdx.x | threadIdx.y << 10 | threadIdx.z << 20;
    r[7] = blockIdx.x + blockIdx.y * 100 + blockIdx.z * 10000 + gridDim.x + gridDim.y * 7 + gridDim.z * 11 +
           blockDim.x * 13 + blockDim.y * 17 + blockDim.z * 19;
    const u32 block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    const u32 thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    const int i = (int)(block * blockDim.x * blockDim.y * blockDim.z + thread);
    if (i < n) for (int k = 0; k < 8; k++) out[i * 8 + k] = r[k];
}
