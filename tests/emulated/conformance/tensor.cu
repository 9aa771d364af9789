// Tensor cores: one warp, fragments straight from memory, thread t owning words [t * count, (t + 1) * count) of each.
#include "elementwise.cuh"

#define NEAR_f32 "sum=-21"
#define NEAR_f16x2 "sum=-20 rel=-10"
#define MMA(name, shape, A, na, B, nb, C, letter, nc, operands, ...) \
    NEAR(name, NEAR_##C) \
    ARGS(name, "mma_" #A "*" #na " mma_" #B "*" #nb " mma_" #C "*" #nc " =" #C "*" #nc " n") \
    extern "C" __global__ void name(const A* a, const B* b, const C* c, C* out, int n) { \
        const int warp = ELEMENT / 32; \
        if (warp * 32 >= n) return; \
        const u32* x = (const u32*)a + (size_t)ELEMENT * na; \
        const u32* y = (const u32*)b + (size_t)ELEMENT * nb; \
        const C* z = c + (size_t)ELEMENT * nc; \
        C r[nc]; \
        asm volatile("mma.sync.aligned." shape " " operands : __VA_ARGS__); \
        for (int k = 0; k < nc; k++) out[(size_t)ELEMENT * nc + k] = r[k]; \
    }
#define R4(letter) "=" letter(r[0]), "=" letter(r[1]), "=" letter(r[2]), "=" letter(r[3])
#define C4(letter) letter(z[0]), letter(z[1]), letter(z[2]), letter(z[3])
MMA(mma_m16n8k4_tf32, "m16n8k4.row.col.f32.tf32.tf32.f32", f32, 2, f32, 1, f32, "f", 4,
    "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};", R4("f") : "r"(x[0]), "r"(x[1]), "r"(y[0]), C4("f"))
MMA(mma_m16n8k8_tf32, "m16n8k8.row.col.f32.tf32.tf32.f32", f32, 4, f32, 2, f32, "f", 4,
    "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};",
    R4("f") : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]), C4("f"))
MMA(mma_m16n8k8_bf16, "m16n8k8.row.col.f32.bf16.bf16.f32", bf16x2, 2, bf16x2, 1, f32, "f", 4,
    "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};", R4("f") : "r"(x[0]), "r"(x[1]), "r"(y[0]), C4("f"))
MMA(mma_m16n8k8_f16_f32, "m16n8k8.row.col.f32.f16.f16.f32", f16x2, 2, f16x2, 1, f32, "f", 4,
    "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};", R4("f") : "r"(x[0]), "r"(x[1]), "r"(y[0]), C4("f"))
MMA(mma_m16n8k8_f16, "m16n8k8.row.col.f16.f16.f16.f16", f16x2, 2, f16x2, 1, f16x2, "r", 2,
    "{%0, %1}, {%2, %3}, {%4}, {%5, %6};",
    "=r"(r[0]), "=r"(r[1]) : "r"(x[0]), "r"(x[1]), "r"(y[0]), "r"(z[0]), "r"(z[1]))
MMA(mma_m16n8k16_f16_f32, "m16n8k16.row.col.f32.f16.f16.f32", f16x2, 4, f16x2, 2, f32, "f", 4,
    "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};",
    R4("f") : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]), C4("f"))
MMA(mma_m16n8k16_bf16, "m16n8k16.row.col.f32.bf16.bf16.f32", bf16x2, 4, bf16x2, 2, f32, "f", 4,
    "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};",
    R4("f") : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]), C4("f"))
MMA(mma_m16n8k16_f16, "m16n8k16.row.col.f16.f16.f16.f16", f16x2, 4, f16x2, 2, f16x2, "r", 2,
    "{%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%8, %9};",
    "=r"(r[0]), "=r"(r[1]) : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]), "r"(z[0]), "r"(z[1]))

// WMMA as PTX: the fragments' layout stays the compiler's business.
NEAR(wmma_tf32, NEAR_f32)
ARGS(wmma_tf32, "mma_f32:128 mma_f32:128 mma_f32:256 =f32:256 n")
SHAPE(wmma_tf32, "n=32 threads=32")
extern "C" __global__ void wmma_tf32(const f32* a, const f32* b, const f32* c, f32* out, int n) {
    asm volatile("{.reg .b32 a<4>, b<4>; .reg .f32 c<8>, d<8>;\n"
        "wmma.load.a.sync.aligned.row.m16n16k8.global.tf32 {a0, a1, a2, a3}, [%0], 8;\n"
        "wmma.load.b.sync.aligned.row.m16n16k8.global.tf32 {b0, b1, b2, b3}, [%1], 16;\n"
        "wmma.load.c.sync.aligned.row.m16n16k8.global.f32 {c0, c1, c2, c3, c4, c5, c6, c7}, [%2], 16;\n"
        "wmma.mma.sync.aligned.row.row.m16n16k8.f32.tf32.tf32.f32 {d0, d1, d2, d3, d4, d5, d6, d7}, {a0, a1, a2, a3},"
        " {b0, b1, b2, b3}, {c0, c1, c2, c3, c4, c5, c6, c7};\n"
        "wmma.store.d.sync.aligned.row.m16n16k8.global.f32 [%3], {d0, d1, d2, d3, d4, d5, d6, d7}, 16;}"
                     ::"l"(a), "l"(b), "l"(c), "l"(out) : "memory");
}
NEAR(wmma_f16, NEAR_f32)
ARGS(wmma_f16, "mma_f16:256 mma_f16:256 mma_f32:256 =f32:256 n")
SHAPE(wmma_f16, "n=32 threads=32")
extern "C" __global__ void wmma_f16(const f16* a, const f16* b, const f32* c, f32* out, int n) {
    asm volatile("{.reg .b32 a<8>, b<8>; .reg .f32 c<8>, d<8>;\n"
        "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {a0, a1, a2, a3, a4, a5, a6, a7}, [%0], 16;\n"
        "wmma.load.b.sync.aligned.col.m16n16k16.global.f16 {b0, b1, b2, b3, b4, b5, b6, b7}, [%1], 16;\n"
        "wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {c0, c1, c2, c3, c4, c5, c6, c7}, [%2], 16;\n"
        "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {d0, d1, d2, d3, d4, d5, d6, d7},"
        " {a0, a1, a2, a3, a4, a5, a6, a7}, {b0, b1, b2, b3, b4, b5, b6, b7}, {c0, c1, c2, c3, c4, c5, c6, c7};\n"
        "wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%3], {d0, d1, d2, d3, d4, d5, d6, d7}, 16;}"
                     ::"l"(a), "l"(b), "l"(c), "l"(out) : "memory");
}
