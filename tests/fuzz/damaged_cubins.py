"""Cubins with something wrong in them: random bytes, fields and attributes of the file, and of its disassembly."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from gemmlab.toolchain.elf import Section, read_elf

SOURCE = """
#include <cuda_pipeline.h>
__device__ int total;
__device__ float table[64];
__constant__ int scale[4] = {1, 2, 3, 4};
__device__ __noinline__ void first(float* p) { p[0] = 1; }
__device__ __noinline__ void second(float* p) { p[0] = 2; }
__device__ void (*either[2])(float*) = {first, second};
__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

extern "C" __global__ void calls(float* p, int i) {
    void (*t[2])(float*) = {first, second};
    t[i & 1](p);
    either[i & 1](p + 1);
    p[2] = fib(i & 7) + scale[i & 3];
}
extern "C" __global__ void tile(const float* a, float* b, int n) {
    __shared__ float left[32][33];
    int i = threadIdx.x;
    for (int k = 0; k < n; ++k) {
        left[k & 31][i & 31] = a[(i + k) & 63];
        __syncthreads();
        b[i & 63] += left[i & 31][k & 31] * table[k & 63] + __shfl_xor_sync(~0u, a[i & 63], k & 31);
        __syncthreads();
    }
    if (__any_sync(~0u, i == n)) atomicAdd(&total, 1);
}
extern "C" __global__ void copies(const int4* from, int* to, int n) {
    __shared__ int4 here[64];
    __pipeline_memcpy_async(&here[threadIdx.x & 15], from + (threadIdx.x & 15), 16);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    to[threadIdx.x & 63] = here[threadIdx.x & 15].x + n;
}
extern "C" __global__ void switches(int n, int* p) {
    switch (n) {
        case 0: *p = 1; break;
        case 1: *p = 22; break;
        case 2: *p = p[3] * 7; break;
        case 3: *p = __sinf(p[2]); break;
        case 4: *p = 5; break;
        case 5: p[9] = p[8]; break;
        case 6: p[1] = p[2] % (p[3] | 1); break;
    }
}
"""
T = TypeVar("T", bytes, str)
KERNELS = ("calls", "tile", "copies", "switches")
_NUMBERS = (0, 1, 2, 7, 15, 16, 31, 32, 63, 64, 255, 256, 0x1000, 0x7FFF, 0xFFFF, 0x10000, 2**31 - 1, 2**31, 2**32 - 1)


@dataclass(frozen=True)
class Damaged:
    """A cubin to launch a kernel of."""

    how: str
    code: bytes
    text: str | None
    """What stands for the disassembly; `None` where it is to be made."""


def damaged(rng: np.random.Generator, code: bytes, text: str, *, disassembled: float) -> Damaged:
    """A mutation of a sound cubin, whose disassembly is `text`.

    Disassembling takes a second, whatever the size. So only the part `disassembled` of all are, where every byte may
    have changed; otherwise the file is changed where the disassembler does not look, or its text is.
    """
    if rng.random() < disassembled:
        how = str(rng.choice(list(_FILE)))
        return Damaged(how, _several(rng, _FILE[how], code), None)
    if rng.random() < 0.5:
        how = str(rng.choice([name for name in _FILE if name not in {"instruction", "truncated"}]))
        return Damaged(how, _several(rng, _FILE[how], code), text)
    return Damaged("text", code, _several(rng, _text, text))


def _several(rng: np.random.Generator, change: Callable[[np.random.Generator, T], T], item: T) -> T:
    for _ in range(int(rng.integers(1, 4))):
        item = change(rng, item)
    return item


def _poked(rng: np.random.Generator, code: bytes, at: int, width: int) -> bytes:
    """With a number of so many bytes at a place changed."""
    if at < 0 or at + width > len(code):
        return code
    old = int.from_bytes(code[at : at + width], "little")
    kind = rng.integers(4)
    if kind == 0:
        new = old ^ 1 << int(rng.integers(8 * width))
    elif kind == 1:
        new = int(rng.choice(_NUMBERS))
    elif kind == 2:
        new = old + int(rng.integers(-4, 5))
    else:
        new = int.from_bytes(rng.bytes(width), "little")
    return code[:at] + (new % (1 << 8 * width)).to_bytes(width, "little") + code[at + width :]


def _byte(rng: np.random.Generator, code: bytes) -> bytes:
    return _poked(rng, code, int(rng.integers(len(code))), int(rng.choice([1, 2, 4])))


def _header(rng: np.random.Generator, code: bytes) -> bytes:
    return _poked(rng, code, int(rng.integers(64)), int(rng.choice([1, 2, 4, 8])))


def _section_header(rng: np.random.Generator, code: bytes) -> bytes:
    (at,), (count,) = struct.unpack_from("<Q", code, 40), struct.unpack_from("<H", code, 60)
    field, width = ((0, 4), (4, 4), (8, 8), (24, 8), (32, 8), (40, 4), (44, 4), (56, 8))[rng.integers(8)]
    return _poked(rng, code, at + 64 * int(rng.integers(max(count, 1))) + field, width)


def _in_section(rng: np.random.Generator, code: bytes, *starts: str, step: int = 4) -> bytes:
    """With a number changed in a section whose name begins so."""
    try:
        found = [section for section in read_elf(code, "").sections if section.name.startswith(starts) and section.data]
    except ValueError:
        return code
    if not found:
        return code
    section: Section = found[rng.integers(len(found))]
    at = code.find(section.data) + step * int(rng.integers(max(len(section.data) // step, 1)))
    return _poked(rng, code, at + int(rng.integers(step)), int(rng.choice([1, 2, 4])))


def _truncated(rng: np.random.Generator, code: bytes) -> bytes:
    return code[: int(rng.integers(len(code)))]


def _cut_out(rng: np.random.Generator, code: bytes) -> bytes:
    at = int(rng.integers(len(code)))
    return code[:at] + code[at + int(rng.integers(1, 65)) :]


_FILE: dict[str, Callable[[np.random.Generator, bytes], bytes]] = {
    "byte": _byte,
    "header": _header,
    "section header": _section_header,
    "attributes": lambda rng, code: _in_section(rng, code, ".nv.info"),
    "symbols": lambda rng, code: _in_section(rng, code, ".symtab", ".strtab", ".shstrtab"),
    "relocations": lambda rng, code: _in_section(rng, code, ".rel", step=8),
    "constants": lambda rng, code: _in_section(rng, code, ".nv.constant", ".nv.global"),
    "instruction": lambda rng, code: _in_section(rng, code, ".text.", step=16),
    "truncated": _truncated,
    "cut out": _cut_out,
}
_PARTS = (
    r"\bR(\d+)", r"\bUR(\d+)", r"\bU?P(\d)", r"\bB(\d+)\b", r"c\[0x([0-9a-f]+)\]", r"\]\[0x([0-9a-f]+)\]",
    r", 0x([0-9a-f]+)", r"\+0x([0-9a-f]+)\]", r"\.L_x_(\d+)\)",
)  # fmt: skip
_LINE = re.compile(r"(/\*[0-9a-f]{4,}\*/\s+)(\S.*?)(\s*;)")


def _text(rng: np.random.Generator, text: str) -> str:
    """With a number in an instruction changed, a modifier gone, or an instruction where another one is."""
    kind = int(rng.integers(8))
    if kind >= 6:
        lines = list(_LINE.finditer(text))
        here, there = (lines[rng.integers(len(lines))] for _ in range(2))
        said = there[2] if kind == 6 else re.sub(r"\.\w+", "", here[2], count=1)
        return text[: here.start(2)] + said + text[here.end(2) :]
    found = list(re.finditer(_PARTS[rng.integers(len(_PARTS))], text))
    if not found:
        return text
    match = found[rng.integers(len(found))]
    number = int(rng.choice(_NUMBERS)) if kind < 4 else int(rng.integers(300))
    return text[: match.start(1)] + (f"{number:x}" if "0x" in match[0] else f"{number}") + text[match.end(1) :]
