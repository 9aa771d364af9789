// float32 arithmetic in every rounding, flushing and saturating; minimum and maximum; comparison; selection.
#include "elementwise.cuh"

#define ROUNDINGS2(op) \
    PTX2(op##_rn_f32, #op ".rn.f32", f32, f32, f32) \
    PTX2(op##_rz_f32, #op ".rz.f32", f32, f32, f32) \
    PTX2(op##_rm_f32, #op ".rm.f32", f32, f32, f32) \
    PTX2(op##_rp_f32, #op ".rp.f32", f32, f32, f32) \
    PTX2(op##_ftz_f32, #op ".rn.ftz.f32", f32, f32, f32) \
    PTX2(op##_rz_ftz_f32, #op ".rz.ftz.f32", f32, f32, f32) \
    PTX2(op##_sat_f32, #op ".rn.sat.f32", f32, f32, f32) \
    PTX2(op##_ftz_sat_f32, #op ".rn.ftz.sat.f32", f32, f32, f32)
ROUNDINGS2(add)
ROUNDINGS2(sub)
ROUNDINGS2(mul)
PTX3(fma_rn_f32, "fma.rn.f32", f32, f32, f32, f32)
PTX3(fma_rz_f32, "fma.rz.f32", f32, f32, f32, f32)
PTX3(fma_rm_f32, "fma.rm.f32", f32, f32, f32, f32)
PTX3(fma_rp_f32, "fma.rp.f32", f32, f32, f32, f32)
PTX3(fma_ftz_f32, "fma.rn.ftz.f32", f32, f32, f32, f32)
PTX3(fma_rp_ftz_f32, "fma.rp.ftz.f32", f32, f32, f32, f32)
PTX3(fma_sat_f32, "fma.rn.sat.f32", f32, f32, f32, f32)
PTX3(fma_ftz_sat_f32, "fma.rn.ftz.sat.f32", f32, f32, f32, f32)
KERNEL3(fma_negated, f32, f32, f32, f32, r = fmaf(-x, y, -z))
KERNEL2(add_absolute, f32, f32, f32, r = fabsf(x) - fabsf(y))
KERNEL2(multiply_negated_absolute, f32, f32, f32, r = -fabsf(x) * y)
KERNEL1(multiply_immediate, f32, f32, r = x * 1.2345f)
KERNEL1(add_immediate_f32, f32, f32, r = x + 1e-3f)
KERNEL2(fma_immediate, f32, f32, f32, r = fmaf(x, -3.5f, y))
KERNEL2(fma_immediate_addend, f32, f32, f32, r = fmaf(x, y, 0.625f))
PTX1(abs_f32, "abs.f32", f32, f32)
PTX1(abs_ftz_f32, "abs.ftz.f32", f32, f32)
PTX1(neg_f32, "neg.f32", f32, f32)
PTX1(neg_ftz_f32, "neg.ftz.f32", f32, f32)
PTX2(copysign_f32, "copysign.f32", f32, f32, f32)
PTX2(min_f32, "min.f32", f32, f32, f32)
PTX2(max_f32, "max.f32", f32, f32, f32)
PTX2(min_ftz_f32, "min.ftz.f32", f32, f32, f32)
PTX2(max_nan_f32, "max.NaN.f32", f32, f32, f32)
PTX2(min_nan_f32, "min.NaN.f32", f32, f32, f32)
PTX2(min_ftz_nan_f32, "min.ftz.NaN.f32", f32, f32, f32)
#if __CUDA_ARCH__ >= 860
PTX2(max_xorsign_f32, "max.xorsign.abs.f32", f32, f32, f32)
PTX2(min_nan_xorsign_f32, "min.NaN.xorsign.abs.f32", f32, f32, f32)
#endif
#define COMPARE(cmp) \
    PTX2(set_##cmp##_f32, "set." #cmp ".f32.f32", f32, f32, f32) \
    PTX2(set_##cmp##_ftz_u32, "set." #cmp ".ftz.u32.f32", u32, f32, f32)
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
#define TESTP(what) \
    KERNEL1(testp_##what##_f32, u32, f32, \
            asm volatile("{.reg .pred p; testp." #what ".f32 p, %1; selp.u32 %0, 1, 0, p;}" : "=r"(r) : "f"(x)))
TESTP(finite)
TESTP(infinite)
TESTP(number)
TESTP(notanumber)
TESTP(normal)
TESTP(subnormal)
KERNEL3(selp_f32, f32, f32, f32, flag, r = z ? x : y)
PTX3(slct_f32, "slct.f32.f32", f32, f32, f32, f32)
PTX3(slct_s32, "slct.u32.s32", u32, u32, u32, s32)
KERNEL2(select_negated, f32, f32, f32, r = x > y ? -x : fabsf(y))
KERNEL3(clamp, f32, f32, f32, f32, r = fminf(fmaxf(x, y), z))
KERNEL2(less_and_greater_joined, u32, f32, f32, r = (x < y && y < 1.0f) || (x != x))
