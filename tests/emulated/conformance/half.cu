// float16 and bfloat16, single and in pairs.
#include "elementwise.cuh"

#define PAIRS2(op) \
    PTX2(op##_f16, #op ".f16", f16, f16, f16) \
    PTX2(op##_f16x2, #op ".f16x2", f16x2, f16x2, f16x2) \
    PTX2(op##_ftz_f16x2, #op ".ftz.f16x2", f16x2, f16x2, f16x2) \
    PTX2(op##_sat_f16x2, #op ".sat.f16x2", f16x2, f16x2, f16x2)
PAIRS2(add)
PAIRS2(sub)
PAIRS2(mul)
PTX3(fma_rn_f16, "fma.rn.f16", f16, f16, f16, f16)
PTX3(fma_rn_f16x2, "fma.rn.f16x2", f16x2, f16x2, f16x2, f16x2)
PTX3(fma_rn_ftz_f16x2, "fma.rn.ftz.f16x2", f16x2, f16x2, f16x2, f16x2)
PTX3(fma_rn_sat_f16x2, "fma.rn.sat.f16x2", f16x2, f16x2, f16x2, f16x2)
PTX3(fma_rn_relu_f16x2, "fma.rn.relu.f16x2", f16x2, f16x2, f16x2, f16x2)
PTX3(fma_rn_bf16, "fma.rn.bf16", bf16, bf16, bf16, bf16)
PTX3(fma_rn_bf16x2, "fma.rn.bf16x2", bf16x2, bf16x2, bf16x2, bf16x2)
PTX3(fma_rn_relu_bf16x2, "fma.rn.relu.bf16x2", bf16x2, bf16x2, bf16x2, bf16x2)
PTX1(neg_f16, "neg.f16", f16, f16)
PTX1(neg_f16x2, "neg.f16x2", f16x2, f16x2)
PTX1(abs_f16x2, "abs.f16x2", f16x2, f16x2)
PTX1(neg_bf16x2, "neg.bf16x2", bf16x2, bf16x2)
PTX1(abs_bf16x2, "abs.bf16x2", bf16x2, bf16x2)
PTX2(min_f16, "min.f16", f16, f16, f16)
PTX2(max_f16x2, "max.f16x2", f16x2, f16x2, f16x2)
PTX2(min_ftz_f16x2, "min.ftz.f16x2", f16x2, f16x2, f16x2)
PTX2(max_nan_f16x2, "max.NaN.f16x2", f16x2, f16x2, f16x2)
#if __CUDA_ARCH__ >= 860
PTX2(min_xorsign_f16x2, "min.xorsign.abs.f16x2", f16x2, f16x2, f16x2)
#endif
PTX2(min_bf16, "min.bf16", bf16, bf16, bf16)
PTX2(max_bf16x2, "max.bf16x2", bf16x2, bf16x2, bf16x2)
PTX2(min_nan_bf16x2, "min.NaN.bf16x2", bf16x2, bf16x2, bf16x2)
#if __CUDA_ARCH__ >= 900
PTX2(add_bf16, "add.bf16", bf16, bf16, bf16)
PTX2(add_bf16x2, "add.bf16x2", bf16x2, bf16x2, bf16x2)
PTX2(sub_bf16x2, "sub.bf16x2", bf16x2, bf16x2, bf16x2)
PTX2(mul_bf16, "mul.bf16", bf16, bf16, bf16)
PTX2(mul_bf16x2, "mul.bf16x2", bf16x2, bf16x2, bf16x2)
#endif
#define COMPARE(cmp) \
    PTX2(set_##cmp##_f16, "set." #cmp ".f16.f16", f16, f16, f16) \
    PTX2(set_##cmp##_f16x2, "set." #cmp ".f16x2.f16x2", f16x2, f16x2, f16x2) \
    KERNEL2(setp_##cmp##_f16x2, u32, f16x2, f16x2, \
            asm volatile("{.reg .pred p, q; .reg .u32 t; setp." #cmp ".f16x2 p|q, %1, %2; selp.u32 %0, 1, 0, p;" \
                         " selp.u32 t, 2, 0, q; or.b32 %0, %0, t;}" : "=r"(r) : "r"(x), "r"(y)))
COMPARE(eq)
COMPARE(ne)
COMPARE(lt)
COMPARE(le)
COMPARE(gt)
COMPARE(ge)
COMPARE(equ)
COMPARE(neu)
COMPARE(ltu)
COMPARE(leu)
COMPARE(gtu)
COMPARE(geu)
COMPARE(num)
COMPARE(nan)
#define JOINED(name, op) \
    KERNEL3(name, u32, f16x2, f16x2, flag, \
            asm volatile("{.reg .pred p, q, c; .reg .u32 t; setp.ne.u32 c, %3, 0; setp." op ".f16x2 p|q, %1, %2, c;" \
                         " selp.u32 %0, 1, 0, p; selp.u32 t, 2, 0, q; or.b32 %0, %0, t;}" \
                         : "=r"(r) : "r"(x), "r"(y), "r"(z)))
JOINED(setp_lt_and_f16x2, "lt.and")
JOINED(setp_ge_or_f16x2, "ge.or")
JOINED(setp_neu_xor_f16x2, "neu.xor")
PTX2(set_gt_ftz_f16_u32, "set.gt.ftz.u32.f16", u32, f16, f16)
#if __CUDA_ARCH__ >= 900
PTX2(set_lt_bf16_u32, "set.lt.u32.bf16", u32, bf16, bf16)
PTX2(set_geu_bf16x2, "set.geu.bf16x2.bf16x2", bf16x2, bf16x2, bf16x2)
#endif
KERNEL2(swapped_halves_f16x2, f16x2, f16x2, f16x2,
        asm volatile("{.reg .b16 a, b; .reg .b32 t; mov.b32 {a, b}, %1; mov.b32 t, {b, a}; mul.f16x2 %0, t, %2;}"
                     : "=r"(r) : "r"(x), "r"(y)))
KERNEL2(low_half_f16x2, f16x2, f16x2, f16x2,
        asm volatile("{.reg .b16 a, b; .reg .b32 t; mov.b32 {a, b}, %1; mov.b32 t, {a, a};"
                     " fma.rn.f16x2 %0, t, %2, %2;}" : "=r"(r) : "r"(x), "r"(y)))
KERNEL2(high_half_f16x2, f16x2, f16x2, f16x2,
        asm volatile("{.reg .b16 a, b; .reg .b32 t; mov.b32 {a, b}, %1; mov.b32 t, {b, b}; add.f16x2 %0, t, %2;}"
                     : "=r"(r) : "r"(x), "r"(y)))
KERNEL2(halves_apart_f16x2, f16x2, f16x2, f16x2,
        asm volatile("{.reg .b16 a, b, c, d; .reg .b32 s, t; mov.b32 {a, b}, %1; mov.b32 {c, d}, %2; mov.b32 s, {b, b};"
                     " mov.b32 t, {c, c}; fma.rn.f16x2 %0, s, %2, t;}" : "=r"(r) : "r"(x), "r"(y)))
KERNEL2(high_halves_f16, f16, f16x2, f16x2,
        asm volatile("{.reg .b16 a, b, c, d; mov.b32 {a, b}, %1; mov.b32 {c, d}, %2; fma.rn.f16 %0, b, d, c;}"
                     : "=h"(r) : "r"(x), "r"(y)))
KERNEL1(high_half_to_f32, f32, f16x2,
        asm volatile("{.reg .b16 a, b; mov.b32 {a, b}, %1; cvt.f32.f16 %0, b;}" : "=f"(r) : "r"(x)))
KERNEL1(absolute_and_negated_f16x2, f16x2, f16x2,
        asm volatile("{.reg .b32 s, t; abs.f16x2 s, %1; neg.f16x2 t, %1; fma.rn.f16x2 %0, s, t, s;}"
                     : "=r"(r) : "r"(x)))
KERNEL1(multiply_immediate_f16x2, f16x2, f16x2,
        asm volatile("mul.f16x2 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(0x3e00b400u)))
KERNEL2(fma_immediate_f16x2, f16x2, f16x2, f16x2,
        asm volatile("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(0x3e00b400u), "r"(y)))
KERNEL2(negated_f16x2, f16x2, f16x2, f16x2,
        asm volatile("{.reg .b32 t; neg.f16x2 t, %1; fma.rn.f16x2 %0, t, %2, %1;}" : "=r"(r) : "r"(x), "r"(y)))
