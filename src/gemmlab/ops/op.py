"""The description of an operation: signature, float64 reference, error bound, work, and the shapes to test.

All other layers use operations through `Op` and do not ask which one it is.
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
"""Operand's name -> its stored elements (`Element.storage`), an array of shape (rows, cols)."""

GFLOPS, GBS = "GFLOP/s", "GB/s"
LIMITS: Mapping[str, str] = {GFLOPS: "FMA peak", GBS: "rate of reading memory"}
"""Unit of an operation's speed -> the rate of the hardware that limits it."""


@dataclass(frozen=True, slots=True)
class Operand:
    """One array argument, laid out in a flat buffer.

    Element (row, column) lies at index `row * ld + column`. Elements from column `cols` up to `ld` of each row are
    padding and must not change. A vector has `rows == 1`.
    """

    name: str
    rows: int
    cols: int
    ld: int
    role: str
    """`"in"` (read), `"out"` (written) or `"inout"` (both)."""
    element: Element = elements.FLOAT32
    """The type of the operand's numbers."""


@dataclass(frozen=True, slots=True)
class Expected:
    """Reference values and elementwise error bounds of one output: float64 arrays of shape (rows, cols).

    Where a value is NaN or infinite, the output must have the same, unless the bound is infinite.
    """

    values: Float64Array
    bound: Float64Array


class Problem(Protocol):
    """A frozen, hashable description of one instance of an operation."""

    @property
    def label(self) -> str:
        """The name of the problem in tables and records, such as `512x512x512` or `4194304`."""

    def to_json(self) -> dict[str, Any]:
        """Return all fields as JSON values."""


class Op(Protocol):
    """One operation, for operands of certain types. The functions take its problems as `problem`."""

    @property
    def name(self) -> str: ...

    @property
    def unit(self) -> str:
        """The unit of the operation's speed: `"GFLOP/s"`, or `"GB/s"` if memory limits it."""

    @property
    def limit(self) -> str:
        """The limit of the hardware for this operation, in words, if devices can measure it (`LIMITS`); else empty."""

    @property
    def extents(self) -> tuple[str, ...]:
        """Names of the scalars that are sizes, in the order of the size grammar; empty if sizes are no scalars."""

    @property
    def precisions(self) -> tuple[str, ...]:
        """The precisions that a kernel may state, the default first: those of `core.precision`, or types of sums."""

    @property
    def usual_sizes(self) -> Mapping[str, str]:
        """Purpose -> default sizes, in the size grammar: `"bench"` (a GPU), `"count"` (the emulator), `"trace"`.

        Empty if `timing.families` has the sizes.
        """

    @property
    def file(self) -> str | None:
        """The Python file that states the operation, which another process must run to know it. It is empty for an
        operation of gemmlab, `None` for one that was stated in this process only.
        """

    def typed(self, types: Mapping[str, Element]) -> Op:
        """Return the operation for operands of these types, by operand; `UsageError` if it does not exist for them."""

    @property
    def flags(self) -> Mapping[str, tuple[int, ...]]:
        """Scalar -> all of its values, for the scalars with few values: a kernel may have them at compile time."""

    @property
    def factors(self) -> Mapping[str, str]:
        """Operand's name -> name of the scalar that multiplies it. If this scalar is 0, the operand is not read."""

    def parse_sizes(self, text: str) -> list[Any]:
        """Return problems from text in the size grammar; `UsageError` names the malformed part."""

    def problem_from_json(self, data: Mapping[str, Any]) -> Any:
        """Return the problem of JSON values from `Problem.to_json`. Raises `UsageError` for other values."""

    def flops(self, problem: Any) -> int:
        """Return the number of arithmetic operations (GEMM: 2MNK)."""

    def bytes_moved(self, problem: Any) -> int:
        """Return the least bytes that must be read and written."""

    def work(self, problem: Any) -> int:
        """Return the number of operations (`flops`) or of bytes (`bytes_moved`), as `unit` counts."""

    def operands(self, problem: Any) -> Sequence[Operand]:
        """Return the array arguments in the order of the operation's signature."""

    def scalars(self, problem: Any) -> Mapping[str, Any]:
        """Return every scalar argument by name, as a NumPy value of the type in which kernels take it."""

    def fill(self, problem: Any, rng: np.random.Generator) -> dict[str, npt.NDArray[Any]]:
        """Return new contents by operand name, each of shape (rows, cols).

        Operands that must not be read hold NaN, or `Element.filler` in types of whole numbers.
        """

    def reference(
        self, problem: Any, inputs: Contents, roundings: int | None = None, precision: str = FLOAT32
    ) -> dict[str, Expected]:
        """Return float64 results and bounds by output name.

        `roundings` is the largest number of consecutive additions that a term goes through, if the order of summation
        is known. The bounds are for `precision`, one of `precisions`; some operations have the same bound for all.
        """

    def dot_length(self, problem: Any) -> int:
        """Return the number of terms of one result (GEMM: K)."""

    def in_layouts(self, problem: Any, layouts: Sequence[str]) -> Sequence[Any]:
        """Return the same problem once in each of `layouts`, without gaps between rows.

        If the operation has no layouts, return only the problem itself.
        """

    def cases(self, layouts: Sequence[str], rng: np.random.Generator, scale: str = "quick") -> Iterable[Any]:
        """Yield problems that cover the whole contract (edges, zero sizes, strides, scalars, specials).

        `scale` is `"quick"` (a naive kernel takes a second or two) or `"full"`.
        """


def only_float32(op: Op, types: Mapping[str, Element]) -> Op:
    """Return `op`, an operation that exists only in float32; `UsageError` for other types."""
    for name, found in types.items():
        if found != elements.FLOAT32:
            raise UsageError(f"{name} is of {found.name}; the operation {op.name} takes only float32")
    return op
