// Products of warpgroups on sm_90a's tensor cores: both operands in shared memory, sums in registers.
//
// Four warps multiply 64 x 16 by 16 x N (halves; 64 x 8 by 8 x N for TF32). Warp w holds rows 16 w .. 16 w + 15 of the
// sums, and its lane l, in groups of four registers j, rows l / 4 and l / 4 + 8 and two neighbouring columns:
//
//     sums[4 j], sums[4 j + 1]         row l / 4,       columns 8 j + 2 (l % 4) and the next
//     sums[4 j + 2], sums[4 j + 3]     row l / 4 + 8
//
// The products run on their own. `begin_products` stands before the first one, `commit_products` ends a group, and no
// register of a group may be touched before `wait_for_products`.
#pragma once

#include "mbarrier.cuh"

__device__ __forceinline__ void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

__device__ __forceinline__ void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Waits until at most LEFT groups of products are under way.
template <int LEFT>
__device__ __forceinline__ void wait_for_products()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}

// Keeps the compiler from moving sums out of registers, or their use before the wait.
template <int COUNT>
__device__ __forceinline__ void pin(float (&sums)[COUNT])
{
#pragma unroll
    for (int i = 0; i < COUNT; ++i) asm volatile("" : "+f"(sums[i])::"memory");
}

// Describes rows of 128 bytes that begin at `address`, a multiple of 1024, with swizzle 128: the 16-byte unit u of row r
// lies at unit u ^ r % 8. The next 16 halves (8 floats) along a row are 32 bytes further.
using Rows = unsigned long long;

__device__ __forceinline__ Rows rows_of_128_bytes(SharedAddress address)
{
    constexpr Rows SWIZZLE_128 = 1ull << 62, EIGHT_ROWS = 1024 >> 4, UNUSED = 1;
    return SWIZZLE_128 | EIGHT_ROWS << 32 | UNUSED << 16 | (address & 0x3ffff) >> 4;
}

// The same `nbytes` further: up to 96 along the rows, or whole tiles of 1024.
__device__ __forceinline__ Rows further(Rows rows, int nbytes) { return rows + (nbytes >> 4); }

#define GEMMLAB_8(v, i) \
    "+f"(v[i]), "+f"(v[i + 1]), "+f"(v[i + 2]), "+f"(v[i + 3]), "+f"(v[i + 4]), "+f"(v[i + 5]), "+f"(v[i + 6]), "+f"(v[i + 7])
#define GEMMLAB_32(v, i) GEMMLAB_8(v, i), GEMMLAB_8(v, i + 8), GEMMLAB_8(v, i + 16), GEMMLAB_8(v, i + 24)

#define GEMMLAB_WGMMA_64(TYPES, TAIL) \
    asm volatile( \
        "{\n.reg .pred add;\nsetp.ne.b32 add, %34, 0;\n" \
        "wgmma.mma_async.sync.aligned.m64n64" TYPES " {" \
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "  \
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"  \
        "}, %32, %33, add, 1, 1" TAIL ";\n}" \
        : GEMMLAB_32(sums, 0) \
        : "l"(a), "l"(b), "r"(static_cast<int>(add)))

#define GEMMLAB_WGMMA_128(TYPES, TAIL) \
    asm volatile( \
        "{\n.reg .pred add;\nsetp.ne.b32 add, %66, 0;\n" \
        "wgmma.mma_async.sync.aligned.m64n128" TYPES " {" \
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "  \
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "  \
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "  \
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"  \
        "}, %64, %65, add, 1, 1" TAIL ";\n}" \
        : GEMMLAB_32(sums, 0), GEMMLAB_32(sums, 32) \
        : "l"(a), "l"(b), "r"(static_cast<int>(add)))

#define GEMMLAB_WGMMA_256(TYPES, TAIL) \
    asm volatile( \
        "{\n.reg .pred add;\nsetp.ne.b32 add, %130, 0;\n" \
        "wgmma.mma_async.sync.aligned.m64n256" TYPES " {" \
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "  \
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "  \
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "  \
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "  \
        "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "  \
        "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "  \
        "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "  \
        "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"  \
        "}, %128, %129, add, 1, 1" TAIL ";\n}" \
        : GEMMLAB_32(sums, 0), GEMMLAB_32(sums, 32), GEMMLAB_32(sums, 64), GEMMLAB_32(sums, 96) \
        : "l"(a), "l"(b), "r"(static_cast<int>(add)))

// Adds the product of 64 rows of A and N rows of B, 32 bytes of each; with `add` == 0 the sums begin with it.
#define GEMMLAB_PRODUCTS(NAME, TYPES, TAIL)                                                                         \
    __device__ __forceinline__ void NAME(float (&sums)[32], Rows a, Rows b, bool add)    \
    {                                                                                                               \
        GEMMLAB_WGMMA_64(TYPES, TAIL);                                                                              \
    }                                                                                                               \
    __device__ __forceinline__ void NAME(float (&sums)[64], Rows a, Rows b, bool add)    \
    {                                                                                                               \
        GEMMLAB_WGMMA_128(TYPES, TAIL);                                                                             \
    }                                                                                                               \
    __device__ __forceinline__ void NAME(float (&sums)[128], Rows a, Rows b, bool add)   \
    {                                                                                                               \
        GEMMLAB_WGMMA_256(TYPES, TAIL);                                                                             \
    }

GEMMLAB_PRODUCTS(multiply_f16, "k16.f32.f16.f16", ", 0, 0")
GEMMLAB_PRODUCTS(multiply_bf16, "k16.f32.bf16.bf16", ", 0, 0")
GEMMLAB_PRODUCTS(multiply_tf32, "k8.f32.tf32.tf32", "")

// The same with 64 rows of the first operand in registers: lane l of warp w has rows 16 w + l / 4 (x[0], x[2]) and
// 8 further (x[1], x[3]), at k = l % 4 (x[0], x[1]) and 4 further (x[2], x[3]). Registers are read until the wait.
__device__ __forceinline__ void multiply_tf32(float (&sums)[32], const unsigned (&x)[4], Rows b, bool add)
{
    asm volatile(
        "{\n.reg .pred add;\nsetp.ne.b32 add, %37, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
        "}, {%32, %33, %34, %35}, %36, add, 1, 1;\n}"
        : GEMMLAB_32(sums, 0)
        : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "l"(b), "r"(static_cast<int>(add)));
}
__device__ __forceinline__ void multiply_tf32(float (&sums)[64], const unsigned (&x)[4], Rows b, bool add)
{
    asm volatile(
        "{\n.reg .pred add;\nsetp.ne.b32 add, %69, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
        "}, {%64, %65, %66, %67}, %68, add, 1, 1;\n}"
        : GEMMLAB_32(sums, 0), GEMMLAB_32(sums, 32)
        : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "l"(b), "r"(static_cast<int>(add)));
}
__device__ __forceinline__ void multiply_tf32(float (&sums)[128], const unsigned (&x)[4], Rows b, bool add)
{
    asm volatile(
        "{\n.reg .pred add;\nsetp.ne.b32 add, %133, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n256k8.f32.tf32.tf32 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
        "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
        "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
        "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
        "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
        "}, {%128, %129, %130, %131}, %132, add, 1, 1;\n}"
        : GEMMLAB_32(sums, 0), GEMMLAB_32(sums, 32), GEMMLAB_32(sums, 64), GEMMLAB_32(sums, 96)
        : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "l"(b), "r"(static_cast<int>(add)));
}

// Registers move between warpgroups: the producer gives back what consumers then take.
template <int REGISTERS>
__device__ __forceinline__ void give_back_registers()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

template <int REGISTERS>
__device__ __forceinline__ void take_registers()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}
