"""The statement of an operation by a user: arguments, reference, bound, shapes, and amount of work.

    from gemmlab import Array, Operation

    operation = Operation(
        name="softmax",
        extents=("m", "n"),
        arrays=(Array("x", ("m", "n")), Array("y", ("m", "n"), role="out")),
        reference=lambda x: np.exp(x - x.max(-1, keepdims=True)) / ...,
        bound=lambda y, n, u: (n + 8) * u * y,
        shapes=((1, 1), (3, 5), (17, 1000)),
        bench="4096x1024",
    )

The command line takes a file with one such object: `gemmlab check softmax.cu --op ./softmax.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gemmlab.core.elements import element
from gemmlab.core.errors import UsageError
from gemmlab.ops.op import GBS, GFLOPS

ROLES = ("in", "out", "inout")


@dataclass(frozen=True, slots=True)
class Array:
    """One array argument of a kernel, contiguous in C order.

    `shape` has names of extents, and numbers. `role` is `"in"`, `"out"` or `"inout"`. `type` is the name of the
    elements' type (see `core.elements`); without it they have the type in the kernel's signature. `fill(rng, shape)`
    returns the contents; without it floats are uniform in [-1, 1), times a factor of `Operation.scales`, and whole
    numbers are uniform over all values of their type. Raises `UsageError` for an unknown role or type, and for an empty
    shape.
    """

    name: str
    shape: tuple[str | int, ...]
    role: str = "in"
    type: str = ""
    fill: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise UsageError(f"array {self.name}: role {self.role!r} is none of {', '.join(ROLES)}")
        if not self.shape:
            raise UsageError(f"array {self.name}: an array of one element has the shape (1,)")
        if self.type:
            element(self.type)


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of your own, as in the module's example. Raises `UsageError` for parts that do not fit together.

    `reference`, `bound`, `flops` and `bytes` are functions. Each is called with the values that its parameters name.
    All may name extents and scalars (numbers). `reference` and `bound` may name inputs (float64 arrays of their
    shapes), and `bound` also results, and `u`, the roundoff of the type in which results are computed.
    """

    name: str
    extents: tuple[str, ...]
    """Names of sizes, in the order in which `--sizes` has them: `("m", "n")` for `4096x1024`."""
    arrays: tuple[Array, ...]
    """The kernel's array arguments."""
    reference: Callable[..., Any]
    """Function that returns the result in float64; several results as a mapping by name or in order."""
    shapes: tuple[tuple[int, ...], ...]
    """Shapes that `check` tries, each a tuple of all extents."""
    bound: Callable[..., Any] | None = None
    """Function that returns the largest error of each element of the result; for several results as `reference` does.
    The error of rounding a result to its type is added. `None` if results must be exact, as of an operation that only
    moves numbers.
    """
    scalars: Mapping[str, float] = field(default_factory=dict)
    """Values of scalar arguments besides the extents, by name. A kernel takes an `int` as int64, a float as float32."""
    flops: Callable[..., int] | None = None
    """Function that returns the number of arithmetic operations; by default one for each element of a result."""
    bytes: Callable[..., int] | None = None
    """Function that returns the bytes that every kernel must move; by default all arrays once, `inout` arrays twice.

    It may also name `x_bytes`: bytes of an element of array `x`.
    """
    unit: str = GBS
    """The unit of the operation's speed, `"GB/s"` or `"GFLOP/s"`."""
    scales: tuple[float, ...] = (1.0,)
    """Factors by which uniform contents are multiplied; `check` tries each shape with each factor."""
    bench: str = ""
    """Sizes that `bench` times on a GPU; by default the largest of `shapes`."""
    count: str = ""
    """The size that is counted or traced on the emulator; by default the largest of `shapes`."""

    def __post_init__(self) -> None:
        names = [*self.extents, *self.scalars, *(array.name for array in self.arrays)]
        for name in (self.name, *names):
            if not name.isidentifier() or not name.isascii() or name != name.lower():
                raise UsageError(f"operation {self.name!r}: {name!r} is no name in small letters")
            if names.count(name) > 1:
                raise UsageError(f"operation {self.name}: {name} is there twice")
        for array in self.arrays:
            for extent in array.shape:
                if isinstance(extent, str) and extent not in self.extents:
                    raise UsageError(f"operation {self.name}: {array.name} has an unknown extent {extent!r}")
        if not any(array.role != "in" for array in self.arrays):
            raise UsageError(f"operation {self.name}: no array is a result")
        if self.unit not in (GBS, GFLOPS):
            raise UsageError(f"operation {self.name}: unit {self.unit!r} is neither {GBS} nor {GFLOPS}")
        if not self.shapes or any(len(shape) != len(self.extents) for shape in self.shapes):
            raise UsageError(f"operation {self.name}: shapes has extents {', '.join(self.extents)} for each case")
