// What every conformance kernel is made of. A kernel's arguments are described by a string that travels in the cubin as
// the variable <kernel>__args, so that whoever has the cubin can call the kernel; cases.py reads it:
//   KIND     an input of n elements; the kind's name says what values it gets (edges.py)
//   KIND*4   an input of 4 n elements
//   =KIND    an output of n elements, zero before the launch; =KIND*4 likewise
//   +KIND:16 read and written, 16 elements
//   n        the number of elements, as an int
// <kernel>__shape changes n, threads or dynamic shared bytes: "n=256 threads=64 shared=512".
//   u32:=*16 sixteen scalars of that kind
//   @f32*4   a texture object over n elements of four floats
// <kernel>__shape changes n, threads, grid or dynamic shared bytes: "n=256 threads=64 shared=512".
// <kernel>__near says how far results may lie from the recorded ones: "ulp=1", or the largest relative or absolute
// difference as a power of two, "rel=-20 abs=-22"; for a matrix product one relative to |A| |B| + |C|, "sum=-21".
// Without it every bit must agree, NaN being equal to NaN.
#pragma once

typedef unsigned char u8;
typedef signed char s8;
typedef unsigned short u16;
typedef short s16;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;
typedef unsigned short f16;
typedef unsigned short bf16;
typedef u32 f16x2;
typedef u32 bf16x2;
typedef float f32;
typedef double f64;
typedef u32 tf32;
typedef u32 count32;   // shift amounts: around 0, 31, 32, 63, 255 and beyond
typedef u32 field;     // start or length of a bit field
typedef u32 selector;  // of prmt
typedef u32 lane;      // lane numbers, offsets and clamps of shuffles
typedef u32 flag;      // 0 or 1
typedef u32 small;     // few different values, so that lanes agree
typedef f32 unit32;    // moderate magnitudes, for special functions

#define ARGS(name, text) extern "C" __device__ char name##__args[] = text;
#define SHAPE(name, text) extern "C" __device__ char name##__shape[] = text;
#define NEAR(name, text) extern "C" __device__ char name##__near[] = text;

// The register classes of inline PTX.
#define REG_u16 "h"
#define REG_s16 "h"
#define REG_f16 "h"
#define REG_bf16 "h"
#define REG_u32 "r"
#define REG_s32 "r"
#define REG_f16x2 "r"
#define REG_bf16x2 "r"
#define REG_tf32 "r"
#define REG_count32 "r"
#define REG_field "r"
#define REG_selector "r"
#define REG_lane "r"
#define REG_flag "r"
#define REG_small "r"
#define REG_u64 "l"
#define REG_s64 "l"
#define REG_f32 "f"
#define REG_unit32 "f"
#define REG_f64 "d"

#define ELEMENT (int)(blockIdx.x * blockDim.x + threadIdx.x)

// One element a thread: out[i] = f(a[i], ...).
#define KERNEL1(name, R, A, ...) \
    ARGS(name, #A " =" #R " n") \
    extern "C" __global__ void name(const A* a, R* out, int n) { \
        const int i = ELEMENT; \
        if (i < n) { const A x = a[i]; R r; __VA_ARGS__; out[i] = r; } \
    }
#define KERNEL2(name, R, A, B, ...) \
    ARGS(name, #A " " #B " =" #R " n") \
    extern "C" __global__ void name(const A* a, const B* b, R* out, int n) { \
        const int i = ELEMENT; \
        if (i < n) { const A x = a[i]; const B y = b[i]; R r; __VA_ARGS__; out[i] = r; } \
    }
// The output may be several times as long as the inputs.
#define KERNEL3_TIMES(name, times, R, A, B, C, ...) \
    ARGS(name, #A " " #B " " #C " =" #R "*" #times " n") \
    extern "C" __global__ void name(const A* a, const B* b, const C* c, R* out, int n) { \
        const int i = ELEMENT; \
        if (i < n) { const A x = a[i]; const B y = b[i]; const C z = c[i]; R r; __VA_ARGS__; out[i] = r; } \
    }
#define KERNEL3(name, R, A, B, C, ...) KERNEL3_TIMES(name, 1, R, A, B, C, __VA_ARGS__)
#define KERNEL4(name, R, A, B, C, D, ...) \
    ARGS(name, #A " " #B " " #C " " #D " =" #R " n") \
    extern "C" __global__ void name(const A* a, const B* b, const C* c, const D* d, R* out, int n) { \
        const int i = ELEMENT; \
        if (i < n) { \
            const A x = a[i]; const B y = b[i]; const C z = c[i]; const D w = d[i]; R r; __VA_ARGS__; out[i] = r; \
        } \
    }

#define PTX1(name, op, R, A) KERNEL1(name, R, A, asm volatile(op " %0, %1;" : "=" REG_##R(r) : REG_##A(x)))
#define PTX2(name, op, R, A, B) \
    KERNEL2(name, R, A, B, asm volatile(op " %0, %1, %2;" : "=" REG_##R(r) : REG_##A(x), REG_##B(y)))
#define PTX3(name, op, R, A, B, C) \
    KERNEL3(name, R, A, B, C, \
            asm volatile(op " %0, %1, %2, %3;" : "=" REG_##R(r) : REG_##A(x), REG_##B(y), REG_##C(z)))
#define PTX1_NEAR(name, how, op, R, A) NEAR(name, how) PTX1(name, op, R, A)
#define PTX2_NEAR(name, how, op, R, A, B) NEAR(name, how) PTX2(name, op, R, A, B)

// What a file is compiled for where only its cubin is wanted.
extern "C" __global__ void nothing() {}
