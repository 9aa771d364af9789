"""Operands of every problem in one shared file without a name, which the workers of all contestants map.

The file is a `memfd` or unlinked immediately; on Windows it is memory without a file. So nothing is left behind,
however the processes end.
"""

from __future__ import annotations

import mmap
import os
import secrets
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from gemmlab.core.elements import element
from gemmlab.ops.footprint import operand_bytes, require_memory
from gemmlab.ops.op import Contents, Op, Operand

Float32Array = npt.NDArray[np.float32]

ALIGNMENT = 64
STAGGER_BYTES = 1088
"""Bytes by which the offset within a page grows from one operand of a problem to the next: operands at the same offset
would slow every contestant down by 4 KiB aliasing.
"""


@dataclass(frozen=True, slots=True)
class OperandPlace:
    """An operand and the offset of its first element in the arena's shared file, in bytes."""

    operand: Operand
    offset: int

    def to_json(self) -> dict[str, Any]:
        """Return the fields by which a worker finds the operand, as JSON values."""
        o = self.operand
        return {
            "name": o.name, "rows": o.rows, "cols": o.cols, "ld": o.ld, "role": o.role, "element": o.element.name,
            "offset": self.offset,
        }  # fmt: skip

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> OperandPlace:
        """Return the place of which `data` are the fields that `to_json` returned."""
        fields = {name: data[name] for name in ("name", "rows", "cols", "ld", "role")}
        return cls(Operand(**fields, element=element(data["element"])), data["offset"])

    @property
    def words(self) -> int:
        """Number of elements from the first to the last, padding between rows included; 0 for an empty operand."""
        o = self.operand
        return (o.rows - 1) * o.ld + o.cols if o.rows and o.cols else 0

    def flat(self, memory: mmap.mmap) -> npt.NDArray[Any]:
        """Return the operand in `memory` as a view of shape (words,) in the operand's element type."""
        return np.frombuffer(memory, self.operand.element.storage, self.words, self.offset)

    def matrix(self, memory: mmap.mmap) -> npt.NDArray[Any]:
        """Return the operand in `memory` as a view of shape (rows, cols) in the operand's element type."""
        o = self.operand
        strides = (o.ld * o.element.nbytes, o.element.nbytes)
        return np.lib.stride_tricks.as_strided(self.flat(memory), (o.rows, o.cols), strides)


class Arena:
    """The shared file of a bench, filled with the random operands of all problems. A context manager that closes it.

    `placed[i]` maps the names of problem `i`'s operands to their places. Raises `MemoryError` if the machine has too
    little memory left.
    """

    def __init__(self, op: Op, problems: Sequence[Any], *, seed: int) -> None:
        self.placed: list[dict[str, OperandPlace]] = []
        self._op = op
        self._problems = list(problems)
        self._seed = seed
        self.nbytes = self._lay_out()
        largest = max(self._problems, key=lambda problem: operand_bytes(op, problem))
        others = len(self._problems) - 1
        require_memory(self.nbytes, f"size {largest.label}" + (f" with {others} smaller ones" if others else ""))
        self.place, self.descriptors, self.memory = _shared_memory(self.nbytes)
        for index in range(len(self._problems)):
            self.restore(index, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for descriptor in self.descriptors:
            os.close(descriptor)
        # Arrays that still view the memory keep it alive; it is unmapped with the last one.
        del self.memory

    def _lay_out(self) -> int:
        end = 0
        for problem in self._problems:
            placed = {}
            for index, operand in enumerate(self._op.operands(problem)):
                page = -(-end // mmap.PAGESIZE) * mmap.PAGESIZE
                offset = page + -(-index * STAGGER_BYTES // ALIGNMENT) * ALIGNMENT
                placed[operand.name] = OperandPlace(operand, offset)
                end = offset + placed[operand.name].words * operand.element.nbytes + ALIGNMENT
            self.placed.append(placed)
        return max(end, mmap.PAGESIZE)

    def fill(self, index: int) -> dict[str, npt.NDArray[Any]]:
        """Return new random operands of problem `index`, the same values at every call; the file is not changed."""
        return self._op.fill(self._problems[index], np.random.default_rng((self._seed, index)))

    def restore(self, index: int, contents: Contents | None) -> None:
        """Write into the file the outputs of problem `index` from `contents`; with `None`, all operands from `fill`."""
        for name, values in (self.fill(index) if contents is None else contents).items():
            placed = self.placed[index][name]
            if contents is None or placed.operand.role != "in":
                placed.matrix(self.memory)[...] = values


def map_place(place: str, nbytes: int) -> mmap.mmap:
    """Map an arena of `nbytes` bytes into a worker.

    `place` is the number of an inherited file descriptor, which is then closed, or on Windows the memory's name.
    """
    if not place.isdecimal():
        return _named(place, nbytes)
    memory = mmap.mmap(int(place), nbytes)
    os.close(int(place))
    return memory


def _shared_memory(nbytes: int) -> tuple[str, tuple[int, ...], mmap.mmap]:
    """Return memory that other processes can map: its place, the descriptors that they inherit, the mapping."""
    if sys.platform == "win32":
        name = f"gemmlab-{os.getpid()}-{secrets.token_hex(8)}"
        return name, (), _named(name, nbytes)
    descriptor = _nameless_file()
    os.ftruncate(descriptor, nbytes)
    return str(descriptor), (descriptor,), mmap.mmap(descriptor, nbytes)


def _named(name: str, nbytes: int) -> mmap.mmap:
    """Map named memory on Windows; it is freed with the last process that maps it."""
    return mmap.mmap(-1, nbytes, tagname=name)  # type: ignore[call-arg,unused-ignore]


def _nameless_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("gemmlab")
    with tempfile.TemporaryFile() as stream:
        return os.dup(stream.fileno())
