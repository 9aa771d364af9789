"""Cases of 64 and 128 bits, and quotients."""

from __future__ import annotations

import operator

from support.isa_cases import case, trunc_div, trunc_rem

M128 = (1 << 128) - 1
PRELUDE = "typedef unsigned __int128 u128;\ntypedef __int128 s128;\n"


def wide(high: int, low: int) -> int:
    return (high << 64 | low) & M128


def folded(value: int) -> int:
    """The halves of 128 bits, mixed."""
    return (value >> 64) ^ value


FOLD = "r = (u64)(v >> 64) ^ (u64)v"
SUMS = [
    case("u64 add64(u64, u64)", "r = x + y", operator.add),
    case("u64 sub64(u64, u64)", "r = x - y", operator.sub),
    case("u64 add64_word(u64, u32)", "r = x + y", operator.add),
    case("u64 sub64_signed_word(u64, s32)", "r = x - (s64)y", operator.sub),
    case("u64 index64(u64, s32)", "r = x + (s64)y * 8", lambda x, y: x + y * 8),
    case("u64 index64_u(u64, u32)", "r = x + (u64)y * 12", lambda x, y: x + y * 12),
    case("s64 neg64(s64)", "r = -x", operator.neg),
    case("s64 abs64(s64)", "r = x < 0 ? -x : x", abs),
    case("u64 add128(u64, u64, u64)", f"u128 v = ((u128)x << 64 | y) + ((u128)y << 64 | z); {FOLD}",
         lambda x, y, z: folded(wide(x, y) + wide(y, z))),
    case("u64 sub128(u64, u64, u64)", f"u128 v = ((u128)x << 64 | y) - ((u128)y << 64 | z); {FOLD}",
         lambda x, y, z: folded(wide(x, y) - wide(y, z))),
    case("s64 neg128(s64, u64)", "s128 v = -((s128)x << 64 | y); r = (s64)(v >> 64) ^ (s64)v",
         lambda x, y: folded(-(x << 64 | y))),
    case("u64 add_three(u64, u64, u32)", "r = (x >> 1) + (y >> 1) + z + 5",
         lambda x, y, z: (x >> 1) + (y >> 1) + z + 5),
]  # fmt: skip
PRODUCTS = [
    case("u64 mul64(u64, u64)", "r = x * y", operator.mul),
    case("s64 mul_wide(s32, s32)", "r = (s64)x * y", operator.mul),
    case("s64 mad_wide(s32, s32, s64)", "r = z - (s64)x * y", lambda x, y, z: z - x * y),
    case("s64 msub_wide(s32, s32, s64)", "r = (s64)x * y - z", lambda x, y, z: x * y - z),
    case("u64 mad_wide_u(u32, u32, u64)", "r = (u64)x * y + z", lambda x, y, z: x * y + z),
    case("u64 mul_mixed(u64, u32)", "r = x * y + 77", lambda x, y: x * y + 77),
    case("u64 umul64hi(u64, u64)", "r = __umul64hi(x, y)", lambda x, y: x * y >> 64),
    case("s64 mul64hi(s64, s64)", "r = __mul64hi(x, y)", lambda x, y: x * y >> 64),
    case("u32 umulhi(u32, u32)", "r = __umulhi(x, y)", lambda x, y: x * y >> 32),
    case("s32 mulhi(s32, s32)", "r = __mulhi(x, y)", lambda x, y: x * y >> 32),
    case("u64 mul128(u64, u64, u64)", f"u128 v = ((u128)x << 64 | y) * ((u128)y << 64 | z); {FOLD}",
         lambda x, y, z: folded(wide(x, y) * wide(y, z) & M128)),
    case("s64 smul128(s64, s64)", "s128 v = (s128)x * y; r = (s64)(v >> 64) ^ (s64)v", lambda x, y: folded(x * y)),
]  # fmt: skip
SHIFTS = [
    case("u64 shl64(u64, count)", "r = x << (y & 63)", lambda x, y: x << (y & 63)),
    case("u64 shr64(u64, count)", "r = x >> (y & 63)", lambda x, y: x >> (y & 63)),
    case("s64 sar64(s64, count)", "r = x >> (y & 63)", lambda x, y: x >> (y & 63)),
    case("u64 rotate64(u64, count)", "r = x << (y & 63) | x >> (-y & 63)",
         lambda x, y: x << (y & 63) | x >> (-y & 63)),
    case("s64 shift64_fixed(s64)", "r = (x << 5) ^ (x << 33) ^ (x >> 9) ^ (x >> 40)",
         lambda x: x << 5 ^ x << 33 ^ x >> 9 ^ x >> 40),
    case("u64 shl128(u64, u64, count)", f"u128 v = (u128)x << 64 | y; v <<= z & 127; {FOLD}",
         lambda x, y, z: folded(wide(x, y) << (z & 127) & M128)),
    case("u64 shr128(u64, u64, count)", f"u128 v = (u128)x << 64 | y; v >>= z & 127; {FOLD}",
         lambda x, y, z: folded(wide(x, y) >> (z & 127))),
    case("s64 sar128(s64, u64, count)", "s128 v = (s128)x << 64 | y; v >>= z & 127; r = (s64)(v >> 64) ^ (s64)v",
         lambda x, y, z: folded((x << 64 | y) >> (z & 127))),
    case("u64 rotate128(u64, u64)", f"u128 v = (u128)x << 64 | y; v = v << 43 | v >> 85; {FOLD}",
         lambda x, y: folded((wide(x, y) << 43 | wide(x, y) >> 85) & M128)),
]  # fmt: skip
ODD = 1
"""Divisors are made odd, so that none is zero."""
QUOTIENTS = [
    case("u32 div_u32(u32, u32)", "r = x / (y | 1)", lambda x, y: x // (y | ODD)),
    case("u32 rem_u32(u32, u32)", "r = x % (y | 1)", lambda x, y: x % (y | ODD)),
    case("s32 div_s32(s32, s32)", "r = x / (y | 1)", lambda x, y: trunc_div(x, y | ODD)),
    case("s32 rem_s32(s32, s32)", "r = x % (y | 1)", lambda x, y: trunc_rem(x, y | ODD)),
    case("u64 div_u64(u64, u64)", "r = x / (y | 1)", lambda x, y: x // (y | ODD)),
    case("u64 rem_u64(u64, u64)", "r = x % (y | 1)", lambda x, y: x % (y | ODD)),
    case("s64 div_s64(s64, s64)", "r = x / (y | 1)", lambda x, y: trunc_div(x, y | ODD)),
    case("s64 rem_s64(s64, s64)", "r = x % (y | 1)", lambda x, y: trunc_rem(x, y | ODD)),
    case("u64 div_mixed(u64, u32)", "r = x / (y | 1) + x % (y | 1)", lambda x, y: sum(divmod(x, y | ODD))),
    case("s16 div_s16(s16, s16)", "r = x / (y | 1) - x % (y | 1)",
         lambda x, y: trunc_div(x, y | ODD) - trunc_rem(x, y | ODD)),
    case("s32 div_by_7(s32)", "r = x / 7 + x % 7", lambda x: trunc_div(x, 7) + trunc_rem(x, 7)),
    case("u32 div_by_10(u32)", "r = x / 10", lambda x: x // 10),
    case("u64 div_by_1000(u64)", "r = x / 1000 + x % 1000", lambda x: sum(divmod(x, 1000))),
    case("s64 div_by_minus_3(s64)", "r = x / -3", lambda x: trunc_div(x, -3)),
    case("s64 div_by_4096(s64)", "r = x / 4096 - x % 4096", lambda x: trunc_div(x, 4096) - trunc_rem(x, 4096)),
]  # fmt: skip
CASES = [*SUMS, *PRODUCTS, *SHIFTS, *QUOTIENTS]
