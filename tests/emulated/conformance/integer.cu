// Integer arithmetic: 16, 32 and 64 bit, high halves, carries, products added, division.
#include "elementwise.cuh"

PTX2(add_u16, "add.u16", u16, u16, u16)
PTX2(add_u32, "add.u32", u32, u32, u32)
PTX2(add_sat_s32, "add.sat.s32", s32, s32, s32)
PTX2(add_u64, "add.u64", u64, u64, u64)
PTX2(sub_u16, "sub.u16", u16, u16, u16)
PTX2(sub_u32, "sub.u32", u32, u32, u32)
PTX2(sub_sat_s32, "sub.sat.s32", s32, s32, s32)
PTX2(sub_u64, "sub.u64", u64, u64, u64)
PTX2(mul_lo_u16, "mul.lo.u16", u16, u16, u16)
PTX2(mul_hi_u16, "mul.hi.u16", u16, u16, u16)
PTX2(mul_hi_s16, "mul.hi.s16", s16, s16, s16)
PTX2(mul_wide_u16, "mul.wide.u16", u32, u16, u16)
PTX2(mul_wide_s16, "mul.wide.s16", s32, s16, s16)
PTX2(mul_lo_u32, "mul.lo.u32", u32, u32, u32)
PTX2(mul_hi_u32, "mul.hi.u32", u32, u32, u32)
PTX2(mul_hi_s32, "mul.hi.s32", s32, s32, s32)
PTX2(mul_wide_u32, "mul.wide.u32", u64, u32, u32)
PTX2(mul_wide_s32, "mul.wide.s32", s64, s32, s32)
PTX2(mul24_lo_u32, "mul24.lo.u32", u32, u32, u32)
PTX2(mul24_hi_s32, "mul24.hi.s32", s32, s32, s32)
PTX2(mul_lo_u64, "mul.lo.u64", u64, u64, u64)
PTX2(mul_hi_u64, "mul.hi.u64", u64, u64, u64)
PTX2(mul_hi_s64, "mul.hi.s64", s64, s64, s64)
PTX3(mad_lo_u16, "mad.lo.u16", u16, u16, u16, u16)
PTX3(mad_lo_u32, "mad.lo.u32", u32, u32, u32, u32)
PTX3(mad_hi_u32, "mad.hi.u32", u32, u32, u32, u32)
PTX3(mad_hi_s32, "mad.hi.s32", s32, s32, s32, s32)
PTX3(mad_hi_sat_s32, "mad.hi.sat.s32", s32, s32, s32, s32)
PTX3(mad_wide_u32, "mad.wide.u32", u64, u32, u32, u64)
PTX3(mad_wide_s32, "mad.wide.s32", s64, s32, s32, s64)
PTX3(mad_wide_s16, "mad.wide.s16", s32, s16, s16, s32)
PTX3(mad24_lo_s32, "mad24.lo.s32", s32, s32, s32, s32)
PTX3(mad_lo_u64, "mad.lo.u64", u64, u64, u64, u64)
PTX3(mad_hi_u64, "mad.hi.u64", u64, u64, u64, u64)
PTX3(sad_u32, "sad.u32", u32, u32, u32, u32)
PTX3(sad_s32, "sad.s32", s32, s32, s32, s32)
PTX3(sad_u16, "sad.u16", u16, u16, u16, u16)
PTX1(abs_s16, "abs.s16", s16, s16)
PTX1(abs_s32, "abs.s32", s32, s32)
PTX1(abs_s64, "abs.s64", s64, s64)
PTX1(neg_s32, "neg.s32", s32, s32)
PTX1(neg_s64, "neg.s64", s64, s64)
PTX2(min_s32, "min.s32", s32, s32, s32)
PTX2(min_u32, "min.u32", u32, u32, u32)
PTX2(max_s32, "max.s32", s32, s32, s32)
PTX2(max_u32, "max.u32", u32, u32, u32)
PTX2(min_s16, "min.s16", s16, s16, s16)
PTX2(max_u16, "max.u16", u16, u16, u16)
PTX2(min_s64, "min.s64", s64, s64, s64)
PTX2(max_u64, "max.u64", u64, u64, u64)
PTX2(div_u32, "div.u32", u32, u32, u32)
PTX2(div_s32, "div.s32", s32, s32, s32)
PTX2(rem_u32, "rem.u32", u32, u32, u32)
PTX2(rem_s32, "rem.s32", s32, s32, s32)
PTX2(div_s16, "div.s16", s16, s16, s16)
PTX2(rem_u16, "rem.u16", u16, u16, u16)
PTX2(div_u64, "div.u64", u64, u64, u64)
PTX2(div_s64, "div.s64", s64, s64, s64)
PTX2(rem_u64, "rem.u64", u64, u64, u64)
PTX2(rem_s64, "rem.s64", s64, s64, s64)
KERNEL1(div_s32_by_7, s32, s32, r = x / 7)
KERNEL1(rem_u32_by_10, u32, u32, r = x % 10u)
KERNEL1(div_s64_by_1000, s64, s64, r = x / 1000)
KERNEL1(div_s32_by_8, s32, s32, r = x / 8)
PTX3(dp4a_u32_u32, "dp4a.u32.u32", u32, u32, u32, u32)
PTX3(dp4a_s32_s32, "dp4a.s32.s32", s32, s32, s32, s32)
PTX3(dp4a_s32_u32, "dp4a.s32.u32", s32, s32, u32, s32)
PTX3(dp4a_u32_s32, "dp4a.u32.s32", s32, u32, s32, s32)
PTX3(dp2a_lo_u32_u32, "dp2a.lo.u32.u32", u32, u32, u32, u32)
PTX3(dp2a_hi_s32_s32, "dp2a.hi.s32.s32", s32, s32, s32, s32)
PTX3(dp2a_lo_s32_u32, "dp2a.lo.s32.u32", s32, s32, u32, s32)
PTX3(dp2a_hi_u32_s32, "dp2a.hi.u32.s32", s32, u32, s32, s32)
#if __CUDA_ARCH__ >= 900
PTX2(add_u16x2, "add.u16x2", u32, u32, u32)
PTX2(min_s16x2, "min.s16x2", u32, u32, u32)
PTX2(max_u16x2, "max.u16x2", u32, u32, u32)
PTX2(min_relu_s32, "min.relu.s32", s32, s32, s32)
PTX2(max_relu_s16x2, "max.relu.s16x2", u32, u32, u32)
#endif

// Sums and products with immediate, negated and constant operands; shifts joined to sums (LEA).
KERNEL1(add_immediate, u32, u32, r = x + 0x89abcdefu)
KERNEL1(subtract_from_immediate, u32, u32, r = 12345u - x)
KERNEL2(add_three, u32, u32, u32, r = x + y + (u32)n)
KERNEL3(add_negated, u32, u32, u32, u32, r = x - y - z)
KERNEL2(multiply_immediate_add, u32, u32, u32, r = x * 0x01234567u + y)
KERNEL2(subtract_product, u32, u32, u32, r = x - y * (u32)n)
KERNEL2(lea_shift_3, u32, u32, u32, r = (x << 3) + y)
KERNEL2(lea_shift_31, u32, u32, u32, r = (x << 31) + y)
KERNEL2(lea_64_unsigned, u64, u64, u32, r = x + (u64)y * 16)
KERNEL2(lea_64_signed, u64, u64, s32, r = x + (s64)y * 4)
KERNEL2(lea_64_wide, u64, u64, u64, r = x + (y << 5))
KERNEL2(lea_high_signed, s32, s32, s32, r = (s32)(((s64)x + ((s64)y << 7)) >> 32))
KERNEL3(add_then_min_s32, s32, s32, s32, s32, r = min((s32)((u32)x + (u32)y), z))
KERNEL3(add_then_max_s32, s32, s32, s32, s32, r = max((s32)((u32)x + (u32)y), z))
KERNEL3(add_then_min_u32, u32, u32, u32, u32, r = min(x + y, z))
KERNEL3(add_then_max_u32, u32, u32, u32, u32, r = max(x + y, z))
KERNEL3(subtract_then_max_s32, s32, s32, s32, s32, r = max((s32)((u32)x - (u32)y), z))
KERNEL3(add_three_64, u64, u64, u64, u64, r = x + y + z)
KERNEL3(subtract_three_64, u64, u64, u64, u64, r = x - y - z)
KERNEL1(multiply_by_constant_64, u64, u64, r = x * 0x9e3779b97f4a7c15ull)

// Carries out and in, as PTX spells them.
KERNEL4(add_cc_addc, u64, u32, u32, u32, u32, u32 lo; u32 hi;
        asm volatile("add.cc.u32 %0, %2, %4;\n\taddc.u32 %1, %3, %5;"
                     : "=r"(lo), "=r"(hi) : "r"(x), "r"(y), "r"(z), "r"(w));
        r = lo | (u64)hi << 32)
KERNEL4(sub_cc_subc, u64, u32, u32, u32, u32, u32 lo; u32 hi;
        asm volatile("sub.cc.u32 %0, %2, %4;\n\tsubc.u32 %1, %3, %5;"
                     : "=r"(lo), "=r"(hi) : "r"(x), "r"(y), "r"(z), "r"(w));
        r = lo | (u64)hi << 32)
KERNEL4(addc_cc_chain, u64, u32, u32, u32, u32, u32 lo; u32 mid; u32 hi;
        asm volatile("add.cc.u32 %0, %3, %5;\n\taddc.cc.u32 %1, %4, %6;\n\taddc.u32 %2, 0, 0;"
                     : "=r"(lo), "=r"(mid), "=r"(hi) : "r"(x), "r"(y), "r"(z), "r"(w));
        r = (lo ^ hi << 7) | (u64)mid << 32)
KERNEL4(subc_cc_chain, u64, u32, u32, u32, u32, u32 lo; u32 mid; u32 hi;
        asm volatile("sub.cc.u32 %0, %3, %5;\n\tsubc.cc.u32 %1, %4, %6;\n\tsubc.u32 %2, 0, 0;"
                     : "=r"(lo), "=r"(mid), "=r"(hi) : "r"(x), "r"(y), "r"(z), "r"(w));
        r = (lo ^ hi << 7) | (u64)mid << 32)
KERNEL4(mad_lo_cc_madc_hi, u64, u32, u32, u32, u32, u32 lo; u32 hi;
        asm volatile("mad.lo.cc.u32 %0, %2, %3, %4;\n\tmadc.hi.u32 %1, %2, %3, %5;"
                     : "=r"(lo), "=r"(hi) : "r"(x), "r"(y), "r"(z), "r"(w));
        r = lo | (u64)hi << 32)
KERNEL4(mad_hi_cc_madc_lo, u64, u32, u32, u32, u32, u32 lo; u32 hi;
        asm volatile("mad.hi.cc.s32 %0, %2, %3, %4;\n\tmadc.lo.s32 %1, %2, %4, %5;"
                     : "=r"(lo), "=r"(hi) : "r"(x), "r"(y), "r"(z), "r"(w));
        r = lo | (u64)hi << 32)
KERNEL4(mad_hi_cc_madc_hi, u64, u32, u32, u32, u32, u32 lo; u32 mid; u32 hi;
        asm volatile("mad.hi.cc.u32 %0, %3, %4, %5;\n\tmadc.hi.cc.u32 %1, %4, %5, %6;\n\taddc.u32 %2, %6, 0;"
                     : "=r"(lo), "=r"(mid), "=r"(hi) : "r"(x), "r"(y), "r"(z), "r"(w));
        r = (lo ^ hi << 7) | (u64)mid << 32)
KERNEL2(multiply_128, u64, u64, u64, r = __umul64hi(x, y) * 3 + x * y)
KERNEL3(multiply_add_128, u64, u64, u64, u64, u64 hi;
        asm volatile("mad.lo.cc.u64 %0, %2, %3, %4;\n\tmadc.hi.u64 %1, %2, %3, 0;"
                     : "=l"(r), "=l"(hi) : "l"(x), "l"(y), "l"(z));
        r ^= hi << 1)
KERNEL2(add_cc_64, u64, u64, u64, u32 c;
        asm volatile("add.cc.u64 %0, %2, %3;\n\taddc.u32 %1, 0, 0;" : "=l"(r), "=r"(c) : "l"(x), "l"(y));
        r ^= (u64)c << 63)
KERNEL2(add_128, u64, u64, u64, u64 hi;
        asm volatile("add.cc.u64 %0, %2, %3;\n\taddc.u64 %1, %3, %2;" : "=l"(r), "=l"(hi) : "l"(x), "l"(y));
        r = r * 3 + hi)
