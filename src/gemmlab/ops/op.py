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
"""Elements of operands by name as they are stored (`Element.storage`), each array of shape (rows, cols)."""

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
    """Reference values and elementwise tolerances for one output, both float64, of its shape."""

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
    """One operation. Implementations live one a file in this folder."""

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
        """The precisions that a kernel may state, the usual one first."""

    @property
    def usual_sizes(self) -> Mapping[str, str]:
        """Sizes by what they are for, in the size grammar: `"bench"` (a GPU), `"count"` (the emulator), `"trace"`.

        Empty where `timing.families` has them.
        """

    @property
    def file(self) -> str | None:
        """The Python file that states it, which another process has to run first; empty for those of gemmlab, `None`
        for one that only this process has.
        """

    def typed(self, types: Mapping[str, Element]) -> Op:
        """Return the operation on operands of these types; `UsageError` if there is none."""

    @property
    def flags(self) -> Mapping[str, tuple[int, ...]]:
        """The scalars with few values that may be compile-time parameters, and those values."""

    @property
    def factors(self) -> Mapping[str, str]:
        """The scalar that each operand is multiplied by, by the operand's name: with 0 the operand is not read."""

    def parse_sizes(self, text: str) -> list[Any]:
        """Problems from the command line's size grammar; `UsageError` names the bad part."""

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
        """Random contents by operand name, each of shape (rows, cols); outputs that are not read: NaN."""

    def reference(
        self, problem: Any, inputs: Contents, roundings: int | None = None, precision: str = FLOAT32
    ) -> dict[str, Expected]:
        """Return float64 results and bounds by output name.

        `roundings`: the most consecutive additions that a term goes through, if the order of summation is known.
        `precision`: the one of `core.precision` that the bounds are for; operations that round no input have one bound.
        """

    def dot_length(self, problem: Any) -> int:
        """Terms summed into one result (GEMM: K)."""

    def in_layouts(self, problem: Any, layouts: Sequence[str]) -> Sequence[Any]:
        """The same problem once in each layout (itself alone where an operation has none)."""

    def cases(self, layouts: Sequence[str], rng: np.random.Generator, scale: str = "quick") -> Iterable[Any]:
        """Problems that exercise the whole contract (edges, zero sizes, strides, scalars, specials).

        `scale` is `"quick"` (a naive kernel's second or two) or `"full"`.
        """


def only_float32(op: Op, types: Mapping[str, Element]) -> Op:
    """Return the operation itself; `UsageError` for types other than float32, in which it does not exist."""
    for name, found in types.items():
        if found != elements.FLOAT32:
            raise UsageError(f"{name} is of {found.name}; the operation {op.name} takes only float32")
    return op
