"""Reductions of tensors whose rows end inside a unit of 16 bytes: what becomes of the elements behind the end."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from reduction_cases import BLOCKS, Reduction

ROWS, WIDTH, SHOWN = 8 * BLOCKS, 256, 32
"""Rows, bytes of a row, and bytes of its end that are recorded; what is before them has a checksum."""
CASES = (
    ("add", "u32", (1, 2, 3)), ("add", "s32", (1,)), ("min", "s32", (2,)), ("max", "u32", (3,)), ("inc", "u32", (1,)),
    ("dec", "u32", (2,)), ("and", "u32", (1,)), ("or", "s32", (2,)), ("xor", "u32", (3,)), ("add", "u64", (1,)),
    ("min", "u64", (1,)), ("max", "s64", (1,)), ("add", "f16", (1, 4, 7)), ("min", "f16", (3,)),
    ("add", "bf16", (2, 5)), ("max", "bf16", (6,)), ("add", "f32", (1, 2, 3)), ("add", "f32_ftz", (2,)),
    ("add", "f64", (1,)),
)  # fmt: skip
"""Operation, type, and how many elements before a unit's end the tensor ends."""


@dataclass(frozen=True, slots=True)
class EndedReduction:
    """A reduction, and the elements that its tensor lacks of the last unit."""

    reduction: Reduction
    lacks: int

    @property
    def name(self) -> str:
        return f"{self.reduction.operation}_{self.reduction.kind}_{self.lacks}"

    def bits(self, device: str) -> npt.NDArray[np.uint32]:
        """Return the last bytes of all rows as words, then a checksum of the rest of each row."""
        rows = self.reduction.left(device, self.lacks).reshape(ROWS, WIDTH)
        sums = [zlib.crc32(row.tobytes()) for row in rows[:, :-SHOWN]]
        return np.concatenate(
            [np.ascontiguousarray(rows[:, -SHOWN:]).view(np.uint32).reshape(-1), np.array(sums, np.uint32)]
        )


def ended_reductions() -> Iterator[EndedReduction]:
    """All of them."""
    for operation, kind, places in CASES:
        for lacks in places:
            yield EndedReduction(Reduction("tensor", operation, kind), lacks)
