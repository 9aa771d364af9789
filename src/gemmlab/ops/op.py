"""The description of an operation: signature, float64 reference, error bound, work, and the shapes to test.

Nothing above this layer asks which operation it handles.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from gemmlab.core import elements
from gemmlab.core.elements import Element
from gemmlab.core.errors import UsageError
from gemmlab.core.precision import FLOAT32

Float32Array = npt.NDArray[np.float32]
Float64Array = npt.NDArray[np.float64]
Contents = Mapping[str, npt.NDArray[Any]]
"""Stored elements (`Element.storage`) of operands by name, each an array of shape (rows, cols)."""

GFLOPS, GBS = "GFLOP/s", "GB/s"
LIMITS: Mapping[str, str] = {GFLOPS: "FMA peak", GBS: "rate of reading memory"}
"""The hardware limit of an operation, by the unit of its speed."""


@dataclass(frozen=True, slots=True)
class Operand:
    """One array argument, laid out in a flat buffer.

    Element (row, column) of an operand of shape `(rows, cols)` lies at `row * ld + column`; elements in
    `cols .. ld` of each row are padding and must not change. A vector has `rows == 1`.
    """

    name: str
    rows: int
    cols: int
    ld: int
    role: str
    """`"in"`, `"out"` or `"inout"`."""
    element: Element = elements.FLOAT32
    """The type of its numbers."""


@dataclass(frozen=True, slots=True)
class Expected:
    """Reference values and elementwise tolerances of one output: float64 arrays of its shape."""

    values: Float64Array
    bound: Float64Array


class Problem(Protocol):
    """A frozen, hashable description of one instance of an operation."""

    @property
    def label(self) -> str:
        """The name in tables and records, `512x512x512` or `4194304`."""

    def to_json(self) -> dict[str, Any]:
        """All fields, as JSON values."""


class Op(Protocol):
    """One operation. Each implementation is a file in this folder."""

    @property
    def name(self) -> str: ...

    @property
    def unit(self) -> str:
        """The unit of its speed: `"GFLOP/s"`, or `"GB/s"` if memory is the limit."""

    @property
    def limit(self) -> str:
        """The hardware limit that a device's probe measures for it, in words; empty if none does."""

    @property
    def extents(self) -> tuple[str, ...]:
        """The scalars that are sizes, in the order of the size grammar."""

    @property
    def precisions(self) -> tuple[str, ...]:
        """The precisions that a kernel may state, the default first."""

    @property
    def usual_sizes(self) -> Mapping[str, str]:
        """Sizes by purpose, in the size grammar: `"bench"` (a GPU), `"count"` (the emulator), `"trace"`.

        Empty if `timing.families` has them.
        """

    @property
    def file(self) -> str | None:
        """The Python file that states the operation, which another process must run first; empty for operations of
        gemmlab, `None` for one that only this process has.
        """

    def typed(self, types: Mapping[str, Element]) -> Op:
        """Return the operation on operands of these types; `UsageError` if there is none."""

    @property
    def flags(self) -> Mapping[str, tuple[int, ...]]:
        """The scalars with few values that may be compile-time parameters, and all of their values."""

    @property
    def factors(self) -> Mapping[str, str]:
        """The scalar that multiplies each operand, by the operand's name. If it is 0, the operand is not read."""

    def parse_sizes(self, text: str) -> list[Any]:
        """Return problems from text in the size grammar; `UsageError` names the malformed part."""

    def problem_from_json(self, data: Mapping[str, Any]) -> Any:
        """Inverse of `Problem.to_json`."""

    def flops(self, problem: Any) -> int:
        """Floating-point operations (GEMM: 2MNK)."""

    def bytes_moved(self, problem: Any) -> int:
        """Compulsory traffic in bytes, reads and writes."""

    def work(self, problem: Any) -> int:
        """Number of operations or bytes, whichever `unit` counts."""

    def operands(self, problem: Any) -> Sequence[Operand]:
        """Array arguments in signature order."""

    def scalars(self, problem: Any) -> Mapping[str, Any]:
        """Every scalar argument by name, as a NumPy scalar of its exact C type."""

    def fill(self, problem: Any, rng: np.random.Generator) -> dict[str, npt.NDArray[Any]]:
        """Return random contents by operand name, each of shape (rows, cols); outputs that are not read hold NaN."""

    def reference(
        self, problem: Any, inputs: Contents, roundings: int | None = None, precision: str = FLOAT32
    ) -> dict[str, Expected]:
        """Return float64 results and bounds by output name.

        `roundings` is the largest number of consecutive additions that a term goes through, if the order of summation
        is known. The bounds are for `precision`, one of `core.precision`; operations that round no input have one
        bound.
        """

    def dot_length(self, problem: Any) -> int:
        """Return the number of terms of one result (GEMM: K)."""

    def in_layouts(self, problem: Any, layouts: Sequence[str]) -> Sequence[Any]:
        """Return the same problem once in each layout, or only itself if the operation has no layouts."""

    def cases(self, layouts: Sequence[str], rng: np.random.Generator, scale: str = "quick") -> Iterable[Any]:
        """Yield problems that cover the whole contract (edges, zero sizes, strides, scalars, specials).

        `scale` is `"quick"` (a naive kernel's second or two) or `"full"`.
        """


def only_float32(op: Op, types: Mapping[str, Element]) -> Op:
    """Return the operation itself; `UsageError` for types other than float32."""
    for name, found in types.items():
        if found != elements.FLOAT32:
            raise UsageError(f"{name} is of {found.name}; the operation {op.name} takes only float32")
    return op
