"""Cases of bits, bytes, packed numbers and saturation."""

from __future__ import annotations

from support.isa_cases import case, clamp, packed, pieces
from support.isa_harness import M32, M64, signed


def reverse(value: int, bits: int) -> int:
    return int(f"{value:0{bits}b}"[::-1], 2)


def permuted(x: int, y: int, selector: int) -> int:
    pair = y << 32 | x
    return sum((pair >> 8 * (selector >> 4 * i & 7) & 255) << 8 * i for i in range(4))


def nth_set(value: int, base: int, offset: int) -> int:
    """Position of the `offset`-th set bit from `base` upwards."""
    return ([i for i in range(base, 32) if value >> i & 1] + [M32] * offset)[offset - 1]


def field(value: int, start: int, width: int, bits: int) -> int:
    """PTX's `bfe`: extended with its own top bit, or with that of the number where it goes over the end."""
    start, width = start & 255, width & 255
    if not width:
        return 0
    number = signed(value, bits) >> min(start, bits - 1)
    return number if start + width > bits else signed(number, width)


def inserted(part: int, value: int, start: int, width: int, bits: int) -> int:
    """PTX's `bfi`."""
    start, width = start & 255, width & 255
    mask = (((1 << width) - 1) << start) & ((1 << bits) - 1)
    return value & ~mask | part << start & mask


def dot(x: int, y: int, z: int, kind_x: bool, kind_y: bool) -> int:
    left, right = pieces(x, 8, of_signed=kind_x), pieces(y, 8, of_signed=kind_y)
    return sum(a * b for a, b in zip(left, right, strict=True)) + z


BITS = [
    case("u32 brev(u32)", "r = __brev(x)", lambda x: reverse(x, 32)),
    case("u64 brevll(u64)", "r = __brevll(x)", lambda x: reverse(x, 64)),
    case("s32 ffs(s32)", "r = __ffs(x)", lambda x: (x & -x).bit_length()),
    case("s32 ffsll(s64)", "r = __ffsll(x)", lambda x: (x & -x).bit_length()),
    case("s32 clz(u32)", "r = __clz(x)", lambda x: 32 - x.bit_length()),
    case("s32 clzll(u64)", "r = __clzll(x)", lambda x: 64 - x.bit_length()),
    case("s32 popc(u32)", "r = __popc(x)", int.bit_count),
    case("s32 popcll(u64)", "r = __popcll(x)", int.bit_count),
    case("u32 fns(u32, u32)", "r = __fns(x, y & 31, 1 + (y >> 5 & 3))",
         lambda x, y: nth_set(x, y & 31, 1 + (y >> 5 & 3))),
    case("u32 byte_perm(u32, u32, u32)", "r = __byte_perm(x, y, z)", permuted),
    case("u32 byte_perm_fixed(u32, u32)", "r = __byte_perm(x, y, 0x0123) ^ __byte_perm(x, y, 0x5240)",
         lambda x, y: permuted(x, y, 0x0123) ^ permuted(x, y, 0x5240)),
    case("u64 byte_swap64(u64)", "u64 v = 0; for (int k = 0; k < 8; k++) v = v << 8 | (x >> 8 * k & 255); r = v",
         lambda x: int.from_bytes(x.to_bytes(8, "little"), "big")),
    case("u32 lowest_bits(u32)", "r = (x & -x) + (x & (x - 1)) + (x ^ (x - 1)) + (x | (x + 1))",
         lambda x: (x & -x) + (x & x - 1) + (x ^ x - 1) + (x | x + 1)),
    case("u32 majority(u32, u32, u32)", "r = ((x & y) | (y & z) | (x & z)) ^ (x & y ^ ~z)",
         lambda x, y, z: (x & y | y & z | x & z) ^ (x & y ^ ~z)),
    case("u32 morton(u32)", "u32 v = x & 0xffff; v = (v | v << 8) & 0xff00ff; v = (v | v << 4) & 0xf0f0f0f;"
         " v = (v | v << 2) & 0x33333333; r = (v | v << 1) & 0x55555555",
         lambda x: sum((x >> i & 1) << 2 * i for i in range(16))),
]  # fmt: skip
SHIFTS = [
    case("u32 shl(u32, count)", "r = x << (y & 31)", lambda x, y: x << (y & 31)),
    case("s32 sar(s32, count)", "r = x >> (y & 31)", lambda x, y: x >> (y & 31)),
    case("u32 funnel_left(u32, u32, count)", "r = __funnelshift_l(x, y, z)",
         lambda x, y, z: (y << 32 | x) << (z & 31) >> 32),
    case("u32 funnel_left_clamped(u32, u32, count)", "r = __funnelshift_lc(x, y, z)",
         lambda x, y, z: (y << 32 | x) << min(z, 32) >> 32),
    case("u32 funnel_right(u32, u32, count)", "r = __funnelshift_r(x, y, z)",
         lambda x, y, z: (y << 32 | x) >> (z & 31)),
    case("u32 funnel_right_clamped(u32, u32, count)", "r = __funnelshift_rc(x, y, z)",
         lambda x, y, z: (y << 32 | x) >> min(z, 32)),
    case("u32 rotate(u32, count)", "r = x << (y & 31) | x >> (-y & 31)",
         lambda x, y: x << (y & 31) | x >> (-y & 31)),
    case("u32 shift_ptx(u32, count)", 'u32 p, q; asm("shl.b32 %0, %1, %2;" : "=r"(p) : "r"(x), "r"(y));'
         ' asm("shr.u32 %0, %1, %2;" : "=r"(q) : "r"(x), "r"(y)); r = p + 3 * q',
         lambda x, y: (x << min(y, 32) & M32) + 3 * (x >> min(y, 32))),
    case("s64 shift_ptx64(s64, count)", 's64 p, q; asm("shl.b64 %0, %1, %2;" : "=l"(p) : "l"(x), "r"(y));'
         ' asm("shr.s64 %0, %1, %2;" : "=l"(q) : "l"(x), "r"(y)); r = p + 3 * q',
         lambda x, y: (x << min(y, 64) & M64) + 3 * (x >> min(y, 63))),
]  # fmt: skip
FIELDS = [
    case("u32 extract(u32, count, count)", 'asm("bfe.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z))',
         lambda x, y, z: x >> (y & 255) & ((1 << (z & 255)) - 1)),
    case("s32 extract_signed(s32, count, count)", 'asm("bfe.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z))',
         lambda x, y, z: field(x, y, z, 32)),
    case("s64 extract64(s64, count, count)",
         'asm("bfe.s64 %0, %1, %2, %3;" : "=l"(r) : "l"(x), "r"(y & 255), "r"(z & 255))',
         lambda x, y, z: field(x, y, z, 64)),
    case("u32 insert(u32, u32, count)", 'asm("bfi.b32 %0, %1, %2, %3, 7;" : "=r"(r) : "r"(x), "r"(y), "r"(z))',
         lambda x, y, z: inserted(x, y, z, 7, 32)),
    case("u64 insert64(u64, u64, count)", 'asm("bfi.b64 %0, %1, %2, 9, %3;" : "=l"(r) : "l"(x), "l"(y), "r"(z & 255))',
         lambda x, y, z: inserted(x, y, 9, z, 64)),
    case("u32 structure(u32, u32)", "struct { u32 a : 5, b : 11, c : 3, d : 13; } f; *(u32*)&f = x;"
         " f.b = y; f.d += f.a; r = *(u32*)&f ^ f.c",
         lambda x, y: ((x & 0x7001F | (y & 0x7FF) << 5 | ((x >> 19) + (x & 31) & 0x1FFF) << 19) ^ (x >> 16 & 7))),
    case("s32 signed_fields(s32)", "struct { int a : 5, b : 11, c : 16; } f; *(s32*)&f = x; r = f.a * f.b - f.c",
         lambda x: signed(x, 5) * signed(x >> 5, 11) - signed(x >> 16, 16)),
    case("u32 mask_of(count, count)", 'asm("bmsk.clamp.b32 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y))',
         lambda x, y: (1 << min(y, 32)) - 1 << min(x, 32)),
    case("s32 extend(s32, count)", 'asm("szext.clamp.s32 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y))',
         lambda x, y: signed(x, min(y, 32)) if y else 0),
]  # fmt: skip
SATURATED = [
    case("s32 add_sat(s32, s32)", 'asm("add.sat.s32 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y))',
         lambda x, y: clamp(x + y, 32)),
    case("s32 sub_sat(s32, s32)", 'asm("sub.sat.s32 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y))',
         lambda x, y: clamp(x - y, 32)),
    case("s32 to_bytes(s32)", 's32 p, q; asm("cvt.sat.s8.s32 %0, %1;" : "=r"(p) : "r"(x));'
         ' asm("cvt.sat.u8.s32 %0, %1;" : "=r"(q) : "r"(x)); r = p * 1000 + q',
         lambda x: clamp(x, 8) * 1000 + clamp(x, 8, of_signed=False)),
    case("s32 to_short(s64)", 'asm("{ .reg .s16 t; cvt.sat.s16.s64 t, %1; cvt.s32.s16 %0, t; }" : "=r"(r) : "l"(x))',
         lambda x: clamp(x, 16)),
    case("u32 to_word(s64)", 'asm("cvt.sat.u32.s64 %0, %1;" : "=r"(r) : "l"(x))',
         lambda x: clamp(x, 32, of_signed=False)),
    case("u32 add_clamped(u32, u32)", "u32 t = x + y; r = t < x ? 0xffffffff : t", lambda x, y: min(x + y, M32)),
    case("u32 average(u32, u32)", "r = __uhadd(x, y) ^ __urhadd(x, y)", lambda x, y: x + y >> 1 ^ x + y + 1 >> 1),
    case("s32 average_signed(s32, s32)", "r = __hadd(x, y) ^ __rhadd(x, y)", lambda x, y: x + y >> 1 ^ x + y + 1 >> 1),
    case("s32 sad(s32, s32, u32)", "r = __sad(x, y, z)", lambda x, y, z: abs(x - y) + z),
    case("u32 usad(u32, u32, u32)", "r = __usad(x, y, z)", lambda x, y, z: abs(x - y) + z),
]  # fmt: skip
PACKED = [
    case("s32 dp4a_ss(s32, s32, s32)", "r = __dp4a(x, y, z)", lambda x, y, z: dot(x, y, z, True, True)),
    case("u32 dp4a_uu(u32, u32, u32)", "r = __dp4a(x, y, z)", lambda x, y, z: dot(x, y, z, False, False)),
    case("s32 dp2a_low(s32, s32, s32)", "r = __dp2a_lo(x, y, z)",
         lambda x, y, z: sum(a * b for a, b in zip(pieces(x, 16, of_signed=True), pieces(y, 8, of_signed=True),
                                                   strict=False)) + z),
    case("u32 dp2a_high(u32, u32, u32)", "r = __dp2a_hi(x, y, z)",
         lambda x, y, z: sum(a * b for a, b in zip(pieces(x, 16), pieces(y, 8)[2:], strict=False)) + z),
    case("u32 vabsdiffu4(u32, u32)", "r = __vabsdiffu4(x, y)", lambda x, y: packed(8, lambda a, b: abs(a - b), x, y)),
    case("u32 vsadu4(u32, u32)", "r = __vsadu4(x, y)",
         lambda x, y: sum(abs(a - b) for a, b in zip(pieces(x, 8), pieces(y, 8), strict=True))),
    case("u32 vadd2(u32, u32)", "r = __vadd2(x, y)", lambda x, y: packed(16, lambda a, b: a + b, x, y)),
    case("u32 vsub4(u32, u32)", "r = __vsub4(x, y)", lambda x, y: packed(8, lambda a, b: a - b, x, y)),
    case("u32 vaddss2(u32, u32)", "r = __vaddss2(x, y)",
         lambda x, y: packed(16, lambda a, b: clamp(a + b, 16), x, y, of_signed=True)),
    case("u32 vsubus4(u32, u32)", "r = __vsubus4(x, y)", lambda x, y: packed(8, lambda a, b: max(a - b, 0), x, y)),
    case("u32 vmaxu4(u32, u32)", "r = __vmaxu4(x, y)", lambda x, y: packed(8, max, x, y)),
    case("u32 vmins2(u32, u32)", "r = __vmins2(x, y)", lambda x, y: packed(16, min, x, y, of_signed=True)),
    case("u32 vavgu4(u32, u32)", "r = __vavgu4(x, y)", lambda x, y: packed(8, lambda a, b: a + b + 1 >> 1, x, y)),
    case("u32 vcmpltu2(u32, u32)", "r = __vcmpltu2(x, y)", lambda x, y: packed(16, lambda a, b: -(a < b), x, y)),
    case("u32 vabsss4(u32)", "r = __vabsss4(x)",
         lambda x: packed(8, lambda a: clamp(abs(a), 8), x, of_signed=True)),
    case("s32 max3(s32, s32, s32)", "r = __vimax3_s32_relu(x, y, z)", lambda x, y, z: max(x, y, z, 0)),
    case("u32 min3_packed(u32, u32, u32)", "r = __vimin3_s16x2(x, y, z)",
         lambda x, y, z: packed(16, min, x, y, z, of_signed=True)),
    case("u32 add_max_packed(u32, u32, u32)", "r = __viaddmax_s16x2_relu(x, y, z)",
         lambda x, y, z: packed(16, lambda a, b, c: max(signed(a + b, 16), c, 0), x, y, z, of_signed=True)),
    case("u32 max_which(u32, u32)", "bool h, l; u32 v = __vibmax_u16x2(x, y, &h, &l); r = v ^ (h * 2 + l)",
         lambda x, y: packed(16, max, x, y) ^ ((x >> 16 >= y >> 16) * 2 + (x & 0xFFFF >= y & 0xFFFF))),
]  # fmt: skip
CASES = [*BITS, *SHIFTS, *FIELDS, *SATURATED, *PACKED]
