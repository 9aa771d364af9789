"""Cases of comparisons, selections, loops and switches."""

from __future__ import annotations

import math

from support.isa_cases import case, trunc_rem
from support.isa_harness import M32, M64, signed

PRELUDE = """
__constant__ unsigned int primes[8] = {2, 3, 5, 7, 11, 13, 17, 19};
__device__ __noinline__ u64 power(u64 base, u32 exponent, u64 modulus) {
    u64 result = 1;
    base %= modulus;
    for (; exponent; exponent >>= 1) {
        if (exponent & 1) result = result * base % modulus;
        base = base * base % modulus;
    }
    return result;
}
"""


def murmur(value: int) -> int:
    value = (value ^ value >> 16) * 0x85EBCA6B & M32
    value = (value ^ value >> 13) * 0xC2B2AE35 & M32
    return value ^ value >> 16


def splitmix(value: int) -> int:
    value = value + 0x9E3779B97F4A7C15 & M64
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & M64
    value = (value ^ value >> 27) * 0x94D049BB133111EB & M64
    return value ^ value >> 31


def crc32(value: int) -> int:
    for _ in range(32):
        value = value >> 1 ^ (0xEDB88320 if value & 1 else 0)
    return value


def collatz(value: int) -> int:
    """Steps down to 1, at most 40."""
    steps = 0
    while value > 1 and steps < 40:
        value = 3 * value + 1 if value & 1 else value // 2
        steps += 1
    return steps


def xorshift(value: int, rounds: int) -> int:
    for _ in range(rounds):
        value ^= value << 13 & M32
        value ^= value >> 17
        value ^= value << 5 & M32
    return value


def digits(value: int) -> int:
    result = 0
    while True:
        result = (result * 3 + value % 10) & M32
        value //= 10
        if not value:
            return result


def dense(x: int, y: int) -> int:
    """What the switch of eleven branches does."""
    selector = x % 11
    table = [
        y + 1, y * 3, y ^ 0x55, y >> 3, ~y, y << 7, y - 77, y | 0xF0, y & 0x0F, -y, y * y,
    ]  # fmt: skip
    return table[selector]


def sparse(x: int) -> int:
    return {0: 9, 7: 8, 1000: 7, 123456: 6, M32: 5}.get(x % 1001 if x & 1 else x, x)


def ordered(x: int, y: int) -> int:
    return (x < y) + 2 * (x <= y) + 4 * (x > y) + 8 * (x >= y) + 16 * (x == y) + 32 * (x != y)


ALL_ORDERS = "r = (x < y) + 2 * (x <= y) + 4 * (x > y) + 8 * (x >= y) + 16 * (x == y) + 32 * (x != y)"
COMPARISONS = [
    *(case(f"u32 order_{kind}({kind}, {kind})", ALL_ORDERS, ordered)
      for kind in ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")),
    case("u64 min_max_u64(u64, u64, u64)", "r = max(min(x, y), z) ^ min(max(y, z), x)",
         lambda x, y, z: max(min(x, y), z) ^ min(max(y, z), x)),
    case("s64 min_max_s64(s64, s64, s64)", "r = max(min(x, y), z) ^ min(max(y, z), x)",
         lambda x, y, z: max(min(x, y), z) ^ min(max(y, z), x)),
    case("s32 min_max(s32, s32, s32)", "r = max(min(x, y), min(z, -5)) + min(max(x, 100), max(y, z))",
         lambda x, y, z: max(min(x, y), min(z, -5)) + min(max(x, 100), max(y, z))),
    case("u32 clamp_u32(u32, u32)", "r = min(max(x, 1000u), y | 65536u)", lambda x, y: min(max(x, 1000), y | 65536)),
    case("u32 connectives(u32, u32, u32)",
         "r = (x < y && (y < z || x == z)) + 2 * ((x > 5) ^ (y < 9) ^ (z & 1)) + 4 * !(x <= y || z > 7)",
         lambda x, y, z: (x < y and (y < z or x == z)) + 2 * ((x > 5) ^ (y < 9) ^ z & 1)
         + 4 * (not (x <= y or z > 7))),
    case("s32 sign(s64)", "r = (x > 0) - (x < 0)", lambda x: (x > 0) - (x < 0)),
    case("u32 leap(u32)", "u32 v = x & 4095; r = v % 4 == 0 && (v % 100 != 0 || v % 400 == 0)",
         lambda x: (v := x & 4095) % 4 == 0 and (v % 100 != 0 or v % 400 == 0)),
    case("s64 select64(s64, s64, s32)", "r = z > 3 ? x : z < -3 ? y : x - y",
         lambda x, y, z: x if z > 3 else y if z < -3 else x - y),
    case("u32 signs(s32, s32, s32)", "r = (x < 0 && y < 0) + 2 * ((x < 0) != (z < 0)) + 4 * (x >= 0 || y >= 0)",
         lambda x, y, z: (x < 0 and y < 0) + 2 * ((x < 0) != (z < 0)) + 4 * (x >= 0 or y >= 0)),
]  # fmt: skip
LOOPS = [
    case("u32 gcd(u32, u32)", "u32 a = x, b = y; while (b) { u32 t = a % b; a = b; b = t; } r = a", math.gcd),
    case("u64 gcd64(u64, u64)", "u64 a = x, b = y; while (b) { u64 t = a % b; a = b; b = t; } r = a", math.gcd),
    case("s32 collatz(u32)", "u64 v = x; int k = 0; while (v > 1 && k < 40) { v = v & 1 ? 3 * v + 1 : v / 2; k++; }"
         " r = k", collatz),
    case("u32 root(u32)", "u32 v = x, p = 0; for (u32 bit = 1u << 30; bit; bit >>= 2) { if (v >= p + bit) {"
         " v -= p + bit; p = (p >> 1) + bit; } else p >>= 1; } r = p", math.isqrt),
    case("u64 root64(u64)", "u64 v = x, p = 0; for (u64 bit = 1ull << 62; bit; bit >>= 2) { if (v >= p + bit) {"
         " v -= p + bit; p = (p >> 1) + bit; } else p >>= 1; } r = p", math.isqrt),
    case("u32 xorshift(u32, u32)", "u32 v = x; for (u32 k = 0; k < (y & 15); k++) {"
         " v ^= v << 13; v ^= v >> 17; v ^= v << 5; } r = v", lambda x, y: xorshift(x, y & 15)),
    case("u32 crc32(u32)", "u32 v = x; for (int k = 0; k < 32; k++) v = v >> 1 ^ (v & 1 ? 0xedb88320 : 0); r = v",
         crc32),
    case("u64 power(u32, u32, u32)", "r = power(x, y, (z >> 1) | 1)", lambda x, y, z: pow(x, y, z >> 1 | 1)),
    case("s32 signed_loop(s32, s32)", "s32 a = x >> 20, b = y >> 20, k = 0;"
         " for (s32 v = a; v < b; v += 37) k += v; for (s32 v = b; v >= a; v -= 41) k -= v; r = k",
         lambda x, y: sum(range(x >> 20, y >> 20, 37)) - sum(range(y >> 20, (x >> 20) - 1, -41))),
    case("u32 digits(u32)", "u32 v = x; u32 k = 0; do { k = k * 3 + v % 10; v /= 10; } while (v); r = k",
         digits),
    case("u32 by_primes(u32)", "u32 k = 0; for (int p = 0; p < 8; p++) if (x % primes[p] == 0) k |= 1 << p; r = k",
         lambda x: sum((x % p == 0) << i for i, p in enumerate((2, 3, 5, 7, 11, 13, 17, 19)))),
    case("u32 table(u32, u32)", "u32 t[16]; for (int k = 0; k < 16; k++) t[k] = x * (k + 1) ^ y;"
         " u32 v = 0; for (int k = 0; k < 8; k++) v += t[(x >> 4 * k ^ k) & 15]; r = v",
         lambda x, y: sum(x * ((x >> 4 * k ^ k) % 16 + 1) & M32 ^ y for k in range(8))),
]  # fmt: skip
HASHES = [
    case("u32 murmur(u32)", "u32 v = x; v ^= v >> 16; v *= 0x85ebca6b; v ^= v >> 13; v *= 0xc2b2ae35; r = v ^ v >> 16",
         murmur),
    case("u64 splitmix(u64)", "u64 v = x + 0x9e3779b97f4a7c15; v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9;"
         " v = (v ^ v >> 27) * 0x94d049bb133111eb; r = v ^ v >> 31", splitmix),
    case("s32 polynomial(s32, s32)", "r = ((x * y + 3) * x - 7 * y) * (x - y) + x % 13",
         lambda x, y: ((x * y + 3) * x - 7 * y) * (x - y) + trunc_rem(x, 13)),
    case("s32 narrow(s8, u8, s16)", "r = x * y - (signed char)(x + y) + (unsigned char)(z >> 3) * (short)(z * x)",
         lambda x, y, z: x * y - signed(x + y, 8) + (z >> 3 & 255) * signed(z * x, 16)),
]  # fmt: skip
SWITCHES = [
    case("u32 dense(u32, u32)", "switch (x % 11) { case 0: r = y + 1; break; case 1: r = y * 3; break;"
         " case 2: r = y ^ 0x55; break; case 3: r = y >> 3; break; case 4: r = ~y; break; case 5: r = y << 7; break;"
         " case 6: r = y - 77; break; case 7: r = y | 0xf0; break; case 8: r = y & 15; break; case 9: r = -y; break;"
         " default: r = y * y; }", dense),
    case("u32 sparse(u32)", "switch (x & 1 ? x % 1001 : x) { case 0: r = 9; break; case 7: r = 8; break;"
         " case 1000: r = 7; break; case 123456: r = 6; break; case 0xffffffff: r = 5; break; default: r = x; }",
         sparse),
]  # fmt: skip
CASES = [*COMPARISONS, *LOOPS, *HASHES, *SWITCHES]
