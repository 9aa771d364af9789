"""Atomic operations on vectors in global memory: each thread updates a vector of its own, so that no order matters."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from one_cubin import one_cubin
from reduction_cases import Reduction, operands

from gemmlab import launch

THREADS, BYTES = 64, 4096
"""Threads of a block, and bytes of memory that a launch updates: every pair of edges is among them."""
LETTERS = {"f32": "f", "f16": "h", "bf16": "h", "f16x2": "r", "bf16x2": "r"}
WORDS = {"f": "float", "h": "unsigned short", "r": "unsigned"}
VECTORS = (
    ("f32", 2), ("f32", 4), ("f16", 2), ("f16", 4), ("f16", 8), ("bf16", 2), ("bf16", 4), ("bf16", 8), ("f16x2", 2),
    ("f16x2", 4), ("bf16x2", 2), ("bf16x2", 4),
)  # fmt: skip
"""Types and numbers of the elements of a vector."""
Bits = npt.NDArray[np.unsignedinteger]


@dataclass(frozen=True, slots=True)
class VectorAtomic:
    """`red` or `atom` of a vector of `count` elements of a type."""

    way: str
    operation: str
    kind: str
    count: int

    @property
    def name(self) -> str:
        return f"{self.way}_{self.operation}_v{self.count}_{self.kind}"

    def kernel(self) -> str:
        """Return the kernel's text. `old` has what `atom` returns."""
        letter, count, first = LETTERS[self.kind], self.count, self.way == "atom"
        word = WORDS[letter]
        given = ", ".join(f'"{letter}"(in[at + {n}])' for n in range(count))
        names = ["{" + ", ".join(f"%{n}" for n in range(start, start + count)) + "}" for start in (0, count + 1)]
        became = ", ".join(f'"={letter}"(old[at + {n}])' for n in range(count)) if first else ""
        values = names[1] if first else "{" + ", ".join(f"%{n}" for n in range(1, count + 1)) + "}"
        suffix = "" if self.kind == "f32" else ".noftz"
        what = f"{self.way}.global.{self.operation}{suffix}.v{count}.{self.kind}"
        place = f"{names[0]}, [%{count}], {values}" if first else f"[%0], {values}"
        return f"""
extern "C" __global__ void {self.name}({word} *cells, const {word} *in, {word} *old) {{
    const int at = (blockIdx.x * {THREADS} + threadIdx.x) * {count};
    asm volatile("{what} {place};" : {became} : "l"(cells + at), {given} : "memory");
}}
"""

    def bits(self, device: str) -> Bits:
        """Return the memory that a device leaves, and for `atom` a checksum of what it returned."""
        old, new = self.operands()
        pair = 2 if self.kind.endswith("x2") else 1
        blocks = old.size // (pair * self.count * THREADS)
        code = one_cubin(source(self.operation), self.name, device)
        args = [values.view(f"u{pair * old.itemsize}") for values in (old, new, np.zeros_like(old))]
        done: Any = launch(code, self.name, blocks, THREADS, args, device=device, timeout_s=10)
        if done.hazards:
            raise RuntimeError(f"{self.name}: {done.hazards[0].explain()}")
        return self.told(done.outputs[0].view(old.dtype), done.outputs[2].view(old.dtype))

    def operands(self) -> tuple[Bits, Bits]:
        """Return the elements in memory and those that come."""
        old, new = operands(Reduction("", self.operation, self.kind.removesuffix("x2")))
        return old[: BYTES // old.itemsize], new[: BYTES // new.itemsize]

    def told(self, cells: Bits, old: Bits) -> Bits:
        """Return what is recorded of the memory that is left and of what `atom` returned."""
        if self.way == "red":
            return cells
        return np.array([zlib.crc32(array.tobytes()) for array in (cells, old)], np.uint32)


@cache
def source(operation: str) -> str:
    """Return the text of the kernels of an operation."""
    return "".join(case.kernel() for case in vector_atomics() if case.operation == operation)


def vector_atomics() -> Iterator[VectorAtomic]:
    """All that PTX names: sums of every type, and the least and greatest of 16-bit numbers."""
    for way in ("red", "atom"):
        for operation in ("add", "min", "max"):
            for kind, count in VECTORS:
                if operation == "add" or kind != "f32":
                    yield VectorAtomic(way, operation, kind, count)
