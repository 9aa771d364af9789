"""Integer expressions in CUDA C++, each with what it comes to in Python's integers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from support.isa_harness import M32, signed

TYPES = {
    "u8": ("unsigned char", 8), "s8": ("signed char", 8), "u16": ("unsigned short", 16), "s16": ("short", 16),
    "u32": ("unsigned int", 32), "s32": ("int", 32), "u64": ("unsigned long long", 64), "s64": ("long long", 64),
    "count": ("unsigned int", 32),
}  # fmt: skip
"""Name -> (C type, bits). Those that begin with "s" have a sign; `count` is a shift amount."""


@dataclass(frozen=True)
class Case:
    """A kernel that computes `result name(x, y, z)` a thread; `body` sets `r`."""

    name: str
    result: str
    inputs: tuple[str, ...]
    body: str
    expected: Callable[..., int]

    @property
    def source(self) -> str:
        named = list(zip(self.inputs, "xyz", strict=False))
        pointers = "".join(f"const {kind}* {letter}s, " for kind, letter in named)
        loads = "".join(f"const {kind} {letter} = {letter}s[i]; " for kind, letter in named)
        return (
            f'extern "C" __global__ void {self.name}({pointers}{self.result}* out, int n) {{\n'
            "    const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
            f"    if (i >= n) return;\n    {loads}{self.result} r; {self.body}; out[i] = r;\n}}\n"
        )


def case(signature: str, body: str, expected: Callable[..., int]) -> Case:
    """`case("u32 add(u32, u32)", "r = x + y", operator.add)`."""
    match = re.fullmatch(r"(\w+) (\w+)\((.*)\)", signature)
    assert match is not None, signature
    return Case(match[2], match[1], tuple(part.strip() for part in match[3].split(",")), body, expected)


def source_of(prelude: str, cases: Iterable[Case]) -> str:
    """One file with every kernel."""
    names = "".join(f"typedef {text} {name};\n" for name, (text, _bits) in TYPES.items())
    return names + prelude + "".join(each.source for each in cases)


def trunc_div(x: int, y: int) -> int:
    """C's quotient."""
    quotient = abs(x) // abs(y)
    return quotient if (x < 0) == (y < 0) else -quotient


def trunc_rem(x: int, y: int) -> int:
    """C's remainder."""
    return x - trunc_div(x, y) * y


def clamp(value: int, bits: int, *, of_signed: bool = True) -> int:
    """The nearest value of a type."""
    low, high = (-1 << (bits - 1), (1 << (bits - 1)) - 1) if of_signed else (0, (1 << bits) - 1)
    return min(max(value, low), high)


def pieces(word: int, bits: int, *, of_signed: bool = False) -> list[int]:
    """The `bits`-bit numbers in a word, lowest first."""
    found = [(word & M32) >> at & ((1 << bits) - 1) for at in range(0, 32, bits)]
    return [signed(piece, bits) for piece in found] if of_signed else found


def packed(bits: int, function: Callable[..., int], *words: int, of_signed: bool = False) -> int:
    """`function` of corresponding `bits`-bit numbers in words, side by side."""
    together = zip(*(pieces(word, bits, of_signed=of_signed) for word in words), strict=True)
    return sum((int(function(*each)) & ((1 << bits) - 1)) << bits * at for at, each in enumerate(together))
