"""An operation as a person states it: arguments, reference, bound, shapes, and the work it is.

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

A file with one such value is named on the command line: `gemmlab check softmax.cu --op ./softmax.py`.
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

    `shape` has names of extents, and numbers. Without `type`, NumPy's name of a type or `"bfloat16"`, its elements are
    of the type that the kernel's signature has. `fill(rng, shape)` makes its contents; without it they are uniform in
    [-1, 1), and whole numbers uniform over their type.
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

    `reference`, `bound`, `flops` and `bytes` are functions; each is given what its parameters name: inputs as float64
    arrays of their shapes, scalars and extents as numbers, and `bound` also the results, and `u`, the roundoff of the
    type that results are computed in.
    """

    name: str
    extents: tuple[str, ...]
    """Names of sizes, in the order in which `--sizes` has them: `("m", "n")` for `4096x1024`."""
    arrays: tuple[Array, ...]
    """Arguments that are arrays."""
    reference: Callable[..., Any]
    """Return the result, or results by name, from float64 inputs."""
    shapes: tuple[tuple[int, ...], ...]
    """Extents that `check` tries."""
    bound: Callable[..., Any] | None = None
    """Return the largest error of each element, or of the results by name, without that of rounding it to its type.
    `None` for results that are exact, as of an operation that only moves numbers.
    """
    scalars: Mapping[str, float] = field(default_factory=dict)
    """Other arguments with their values: whole ones as int, others as float."""
    flops: Callable[..., int] | None = None
    """Return the number of operations; by default one for each result."""
    bytes: Callable[..., int] | None = None
    """Return the bytes that any kernel has to move; by default all arrays once, in and out."""
    unit: str = GBS
    """The unit of its speed, `"GB/s"` or `"GFLOP/s"`."""
    scales: tuple[float, ...] = (1.0,)
    """Factors before uniform contents; `check` tries each shape with each of them."""
    bench: str = ""
    """Sizes that `bench` times on a GPU; by default the largest of `shapes`."""
    count: str = ""
    """The size that is counted on the emulator; by default the largest of `shapes`."""

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
