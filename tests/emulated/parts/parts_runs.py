"""Runs of kernels of parts on the emulator, their errors, and the verdicts on which they choose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from gemmlab.core.counters import Counters
from gemmlab.core.precision import PARTS, SMALLEST_NORMAL, UNIT_ROUNDOFF
from gemmlab.devices.device import Device
from gemmlab.devices.select import open_device
from gemmlab.kernels.bound import place
from gemmlab.kernels.catalog import ladder
from gemmlab.kernels.kernel import Kernel
from gemmlab.ops.gemm import GemmOp, GemmProblem
from parts_data import Array

OP = GemmOp()
KERNELS = [kernel for kernel in ladder("gemm", "cuda") if kernel.precision in PARTS]
BLOCK = 128
"""Elements of k with one scale."""
STRIP = 128
"""Rows of A, or columns of B, of a tile."""


@cache
def device() -> Device:
    return open_device("emulated:sm_90a")


@dataclass(frozen=True)
class Outcome:
    """C after a product, and what was counted."""

    c: Array
    counters: Counters

    @property
    def halves(self) -> int:
        """Products of tensor cores with halves."""
        return self.counters.executed("HGMMA") - self.bfloats

    @property
    def bfloats(self) -> int:
        """Products of tensor cores with bfloat16."""
        return self.counters.executed("HGMMA.BF16")


def product(
    kernel: Kernel, a: Array, b: Array, *, alpha: float = 1.0, beta: float = 0.0, c: Array | None = None,
    layout: str = "nn", **config: int,
) -> Outcome:  # fmt: skip
    """alpha * A B + beta * C by a kernel, its operands stored as `layout` says; C is NaN unless given.

    Asserts that there was no hazard and that all tickets are zero again.
    """
    (m, k), n = a.shape, b.shape[1]
    problem = GemmProblem(m, n, k, alpha, beta).with_layout(layout)
    stored = {
        "a": a.T if layout[0] == "t" else a,
        "b": b.T if layout[1] == "t" else b,
        "c": np.full((m, n), np.nan, np.float32) if c is None else c,
    }
    buffers = {name: device().upload(np.ascontiguousarray(x).ravel()) for name, x in stored.items()}
    bound = place(kernel, device(), config).bind(OP, problem, buffers)
    seen = bound.observe()
    assert seen.hazards == ()
    assert bound.nonzero_tickets() == 0
    out = np.empty((m, n), np.float32)
    bound.download("c", out)
    for name, x in stored.items():
        if name != "c":
            after = np.empty(x.shape, np.float32)
            bound.download(name, after)
            np.testing.assert_array_equal(after.view(np.uint32), np.ascontiguousarray(x).view(np.uint32))
    for buffer in (*buffers.values(), bound.workspace, bound.tickets):
        if buffer is not None:
            device().free(buffer)
    return Outcome(out, seen.counters)


def errors(c: Array, a: Array, b: Array) -> npt.NDArray[np.float64]:
    """|C - A B| / (2^-24 |A| |B|) by element; what the smallest numbers cannot express is no error."""
    exact, magnitude = a.astype(np.float64) @ b.astype(np.float64), np.abs(a).astype(np.float64) @ np.abs(b)
    error = np.maximum(np.abs(c - exact) - (a.shape[1] + 12) * SMALLEST_NORMAL, 0.0)
    return np.where(error > 0, error / np.where(magnitude > 0, magnitude, 1.0), 0.0) / UNIT_ROUNDOFF


def chain(a: Array, b: Array) -> Array:
    """A B by one float32 multiply-add after the other, in the order of k: `naive`."""
    sums = np.zeros((len(a), b.shape[1]), np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        for left, right in zip(a.T.astype(np.float64), b.astype(np.float64), strict=True):
            # The product of two float32 is exact in float64.
            sums = (np.multiply.outer(left, right) + sums).astype(np.float32)
    return sums


@dataclass(frozen=True)
class Verdict:
    """What `split_floats.cuh` finds out about strips: an array of one value a strip each."""

    unfit: npt.NDArray[np.bool_]
    wide: npt.NDArray[np.bool_]
    small: npt.NDArray[np.bool_]
    thin: npt.NDArray[np.bool_]
    wider: npt.NDArray[np.bool_]


def verdict(x: Array, strip: int = STRIP) -> Verdict:
    """The verdicts on the strips of rows of x (rows x k), by the same conditions, written for whole arrays."""
    found: Mapping[str, list[list[bool]]] = {name: [] for name in ("unfit", "wide", "small", "thin", "wider")}
    sizes = np.abs(x).view(np.uint32).astype(np.int64)
    for rows in (sizes[first : first + strip] for first in range(0, len(x), strip)):
        of_strip: dict[str, list[bool]] = {name: [] for name in found}
        for block in (rows[:, first : first + BLOCK] for first in range(0, x.shape[1], BLOCK)):
            live = block[block.max(axis=1) > 0]
            if not live.size:
                continue
            largest, count = live.max(axis=1), live.shape[1]
            least = np.where(live == 0, 2**32 - 1, live - 1).min(axis=1)
            apart = (largest >> 23) - (least >> 23)
            below = (live < (largest - np.minimum(largest, 12 << 23))[:, np.newaxis]).sum(axis=1)
            of_strip["unfit"].append(bool(((largest >> 23 < 67) | (largest >> 23 > 187)).any()))
            of_strip["wide"].append(bool((apart > 27).any()))
            of_strip["wider"].append(bool((apart > 100).any()))
            of_strip["small"].append(bool((4 * below > count).any()))
            of_strip["thin"].append(bool((4 * (live == 0).sum(axis=1) > 3 * count).any()))
        for name, values in of_strip.items():
            found[name].append([any(values)])
    return Verdict(**{name: np.array(values, bool).ravel() for name, values in found.items()})


def ways(a: Array, b: Array) -> tuple[int, int, int]:
    """The number of tiles that `by_tile` computes by halves, by bfloat16, and exactly."""
    of_a, of_b = verdict(a), verdict(np.ascontiguousarray(b.T))

    def either(name: str) -> npt.NDArray[np.bool_]:
        return np.logical_or.outer(getattr(of_a, name), getattr(of_b, name))

    halves = ~either("unfit") & ~either("thin") & ~(either("wide") & either("small"))
    bfloats = ~halves & ~either("unfit") & ~either("wider")
    return int(halves.sum()), int(bfloats.sum()), int((~halves & ~bfloats).sum())
