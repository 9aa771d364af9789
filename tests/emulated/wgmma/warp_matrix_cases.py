"""Operands of mma.sync with integers and doubles, and what a device makes of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab import launch

FILE = Path(__file__).with_name("warp_matrices.cu")
TILES = 64
"""Tiles of each kernel."""
Words = npt.NDArray[Any]
EDGES = np.array(
    [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 2.0**-1022, -(2.0**-1022), 1.7e308, -1.7e308,
     1 + 2.0**-52, 2.0**53, -(2.0**53), 2.0**-537, 3e-308],
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class WarpMatrix:
    """A kernel of `warp_matrices.cu`: the numbers in each thread of A, B and the sums."""

    kernel: str
    a: int
    b: int
    sums: int
    doubles: bool = False

    def operands(self) -> tuple[Words, Words, Words]:
        """A, B and the sums of all tiles: tiles x 32 threads x numbers."""
        random = np.random.default_rng(len(self.kernel) + self.a)
        shapes = [(TILES, 32, count) for count in (self.a, self.b, self.sums)]
        if not self.doubles:
            a, b, c = (random.integers(0, 1 << 32, shape, np.uint32) for shape in shapes)
            a[-8:], b[-8:] = 0x80807F7F, 0x807F80FF
            return a, b, c.view(np.int32)
        plain = [random.standard_normal(shape) for shape in shapes]
        exponents = [np.repeat((0, 30, 1, 520), TILES // 4)[:, None, None] * random.integers(-1, 2, shape)
                     for shape in shapes]  # fmt: skip
        a, b, c = (np.ldexp(each, exponent) for each, exponent in zip(plain, exponents, strict=True))
        for each in (a, b, c):
            each[-8:] = random.choice(EDGES, each[-8:].shape)
        return a, b, c


CASES = (
    WarpMatrix("s8_s8_32", 4, 2, 4),
    WarpMatrix("u8_s8_32", 4, 2, 4),
    WarpMatrix("u8_u8_16", 4, 2, 4),
    WarpMatrix("doubles_4", 1, 1, 2, doubles=True),
    WarpMatrix("doubles_8", 4, 2, 4, doubles=True),
)


def results(device: str, case: WarpMatrix) -> Words:
    """Bits of the sums of all tiles, after one multiplication of each."""
    found = []
    for operands in zip(*case.operands(), strict=True):
        done = launch(FILE, case.kernel, 1, 32, [np.ascontiguousarray(each) for each in operands], device=device)
        assert not done.hazards
        assert isinstance(done.outputs, list)
        found.append(done.outputs[2].view(np.uint64 if case.doubles else np.uint32))
    return np.stack(found)


def record(device: str) -> Mapping[str, Words]:
    """Return the results of a device for all cases, by kernel."""
    return {case.kernel: results(device, case) for case in CASES}
