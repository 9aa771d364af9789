"""The description of a batch: many matrix products of one shape, with matrices at equal distances in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from gemmlab.core.errors import UsageError
from gemmlab.ops.gemm_problem import GemmProblem

PACKED = -1
"""A stride that stands for a matrix's stored rows times its leading dimension: the next matrix begins where a further
row would.
"""
OPERANDS = ("a", "b", "c")


@dataclass(frozen=True, slots=True)
class BatchProblem(GemmProblem):
    """`batch` products of one shape. `stride_a`, `stride_b` and `stride_c` are elements from one matrix to the next.

    With stride 0 of `a` or `b`, all products share one matrix. Matrices may also lie side by side in the rows of one
    wide matrix: then the stride is shorter than a matrix, and the leading dimension is that of the wide matrix. The
    constructor raises `UsageError` for impossible values, and for results that overlap.
    """

    batch: int = 1
    stride_a: int = PACKED
    stride_b: int = PACKED
    stride_c: int = PACKED

    def __post_init__(self) -> None:
        GemmProblem.__post_init__(self)
        if self.batch < 0:
            raise UsageError(f"batch = {self.batch}: a batch has at least 0 products")
        for name in OPERANDS:
            if getattr(self, f"stride_{name}") < PACKED:
                raise UsageError(f"stride_{name} = {getattr(self, f'stride_{name}')}: strides are at least 0")
        step = self.step("c")
        beside = step >= self.n and self.ldc >= (self.batch - 1) * step + self.n
        if self.batch > 1 and self.m * self.n and step < self.span("c") and not beside:
            raise UsageError(
                f"stride_c = {step}: results of {self.m} rows, {self.ldc} elements apart, overlap; it must be at least "
                f"{self.span('c')}, or {self.n} if ldc holds all {self.batch} side by side"
            )

    @property
    def label(self) -> str:
        """`BATCH*MxNxK`, followed by all values that differ from the defaults."""
        strides = [f"stride_{name}={self.step(name)}" for name in OPERANDS if getattr(self, f"stride_{name}") != PACKED]
        return " ".join([f"{self.batch}*{GemmProblem.label.__get__(self)}", *strides])

    @property
    def one(self) -> GemmProblem:
        """One of the products, as a problem without a batch."""
        return GemmProblem(**{field.name: getattr(self, field.name) for field in fields(GemmProblem)})

    def stored(self, name: str) -> tuple[int, int, int]:
        """Return rows, columns and leading dimension of a matrix of operand `name` as it is stored."""
        rows, cols = {"a": (self.m, self.k), "b": (self.k, self.n), "c": (self.m, self.n)}[name]
        turned = name != "c" and getattr(self, f"trans_{name}")
        return (*((cols, rows) if turned else (rows, cols)), getattr(self, f"ld{name}"))

    def span(self, name: str) -> int:
        """Return the number of elements from a matrix's first to its last, gaps included; 0 for an empty matrix."""
        rows, cols, ld = self.stored(name)
        return (rows - 1) * ld + cols if rows and cols else 0

    def step(self, name: str) -> int:
        """Return the number of elements from one matrix of operand `name` to the next."""
        rows, _, ld = self.stored(name)
        stated: int = getattr(self, f"stride_{name}")
        return rows * ld if stated == PACKED else stated

    def words(self, name: str) -> int:
        """Return the number of elements from the first matrix's first to the last matrix's last, gaps included.

        It is 0 if there are no products or the matrices are empty.
        """
        return (self.batch - 1) * self.step(name) + self.span(name) if self.batch and self.span(name) else 0

    @classmethod
    def from_json(cls, data: Mapping[str, Any], one: GemmProblem) -> BatchProblem:
        """Return a batch of products like `one`, with `batch` and strides from `data`, whose other fields are ignored.

        Raises `UsageError` for a value that is no whole number or is impossible.
        """
        own = {name: value for name, value in data.items() if name in ("batch", *(f"stride_{n}" for n in OPERANDS))}
        for name, value in own.items():
            if type(value) is not int:
                raise UsageError(f"batch problem: {name} = {value!r} is of the wrong kind")
        return cls(**{field.name: getattr(one, field.name) for field in fields(GemmProblem)}, **own)
