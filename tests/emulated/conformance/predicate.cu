// Integer comparison in every order and width, predicates joined, moved into registers and back.
#include "elementwise.cuh"

#define COMPARE(cmp) \
    PTX2(set_##cmp##_s32, "set." #cmp ".u32.s32", u32, s32, s32) \
    PTX2(set_##cmp##_u32, "set." #cmp ".u32.u32", u32, u32, u32) \
    PTX2(set_##cmp##_s64, "set." #cmp ".u32.s64", u32, s64, s64) \
    PTX2(set_##cmp##_u64, "set." #cmp ".u32.u64", u32, u64, u64)
COMPARE(eq)
COMPARE(ne)
COMPARE(lt)
COMPARE(le)
COMPARE(gt)
COMPARE(ge)
PTX2(set_lt_s16, "set.lt.u32.s16", u32, s16, s16)
PTX2(set_lo_u32, "set.lo.u32.u32", u32, u32, u32)
PTX2(set_lt_f32_s32, "set.lt.f32.s32", f32, s32, s32)
#define JOINED(name, op, type, letter, A) \
    KERNEL3(name, u32, A, A, flag, \
            asm volatile("{.reg .pred p, q, c; .reg .u32 t; setp.ne.u32 c, %3, 0;" \
                         " setp." op "." type " p|q, %1, %2, c;" \
                         " selp.u32 %0, 1, 0, p; selp.u32 t, 2, 0, q; or.b32 %0, %0, t;}" \
                         : "=r"(r) : letter(x), letter(y), "r"(z)))
#define JOINED_ALL_WAYS(cmp, type, letter, A) \
    JOINED(setp_##cmp##_and_##type, #cmp ".and", #type, letter, A) \
    JOINED(setp_##cmp##_or_##type, #cmp ".or", #type, letter, A) \
    JOINED(setp_##cmp##_xor_##type, #cmp ".xor", #type, letter, A)
#define JOINED_INTEGERS(cmp) \
    JOINED_ALL_WAYS(cmp, s32, "r", s32) \
    JOINED_ALL_WAYS(cmp, u32, "r", u32) \
    JOINED_ALL_WAYS(cmp, s64, "l", s64) \
    JOINED_ALL_WAYS(cmp, u64, "l", u64)
JOINED_INTEGERS(eq)
JOINED_INTEGERS(ne)
JOINED_INTEGERS(lt)
JOINED_INTEGERS(le)
JOINED_INTEGERS(gt)
JOINED_INTEGERS(ge)
#define JOINED_FLOATS(cmp) \
    JOINED_ALL_WAYS(cmp, f32, "f", f32) \
    JOINED_ALL_WAYS(cmp, f64, "d", f64)
JOINED_FLOATS(eq)
JOINED_FLOATS(ne)
JOINED_FLOATS(lt)
JOINED_FLOATS(ge)
JOINED_FLOATS(equ)
JOINED_FLOATS(neu)
JOINED_FLOATS(leu)
JOINED_FLOATS(gtu)
JOINED_FLOATS(num)
JOINED_FLOATS(nan)
JOINED(setp_gt_or_ftz_f32, "gt.or.ftz", "f32", "f", f32)
KERNEL4(predicates_logic, u32, s32, s32, s32, s32,
        r = ((x < y) && (z < w)) | ((x == y) || (z > w)) << 1 | ((x < z) ^ (y < w)) << 2 |
            !((x < w) && (y >= z) && (x != z)) << 3)
KERNEL2(predicates_packed, u32, s32, s32,
        bool p[7]; for (int k = 0; k < 7; k++) p[k] = x > y * (k - 3);
        r = 0; for (int k = 0; k < 7; k++) r |= (u32)p[k] << k)
KERNEL3(selp_u32, u32, u32, u32, flag, r = z ? x : y)
KERNEL3(selp_u64, u64, u64, u64, flag, r = z ? x : y)
KERNEL3(selp_u16, u16, u16, u16, flag, r = z ? x : y)
KERNEL2(select_immediate, u32, s32, s32, r = x < y ? 0x12345678u : 77u)
KERNEL2(guarded_store, u32, u32, u32, r = 5; if (x & 1) r = y * 3; if (y & 4) r += x)
