"""Figures of a solution that chooses values for a CPU kernel. They follow from the values alone, on any machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gemmlab.core.errors import UsageError
from gemmlab.core.precision import UNIT_ROUNDOFF

if TYPE_CHECKING:
    from gemmlab.kernels.choice_exercise import ChoiceExercise, Chosen
    from gemmlab.kernels.kernel import Kernel

Figures = dict[str, float]
_LATENCY, _UNITS = 4, 2
"""Latency of an addition in cycles, and the most additions that begin in one cycle, as the exercises assume them."""
_PARTS, _PART_EXTENT = 3, 64


def figures_of(exercise: ChoiceExercise, kernel: Kernel, chosen: Chosen) -> Figures:
    """Return the figures of a solution by name, and the chosen whole numbers; `kernel` has the chosen values."""
    own = {name: float(value) for name, value in chosen.items() if not isinstance(value, str)}
    return own | _MEASURES[exercise.measure](exercise, kernel, chosen)


def _caches(exercise: ChoiceExercise, kernel: Kernel, chosen: Chosen) -> Figures:
    """Return misses, bytes from and to memory, and accessed bytes per 1000 multiply-adds, in simulated caches."""
    from gemmlab.observe.cache_record import cache_rows, run_cache
    from gemmlab.ops.catalog import find_op
    from gemmlab.probes.cachesim import Caches, Level

    op = find_op(kernel.op)
    caches = Caches(Level.parse(exercise.l1), Level.parse(exercise.l2))
    record = run_cache([kernel], op, op.parse_sizes(exercise.size_for(chosen)), caches, lambda *_done: None)
    (row,) = cache_rows(record)
    return {
        "l1_misses": row.l1_misses, "l2_misses": row.l2_misses, "memory_bytes": 1000 * row.from_memory,
        "used_bytes": 1000 * row.accessed_bytes,
    }  # fmt: skip


def _division(exercise: ChoiceExercise, kernel: Kernel, chosen: Chosen) -> Figures:
    """Return the largest job per 1000 of an equal share of C, and the micro-kernel's loads per 1000 of its FMAs."""
    from gemmlab.ops.catalog import find_op

    (problem,) = find_op(kernel.op).parse_sizes(exercise.size_for(chosen))
    if kernel.divide is None:
        raise UsageError(f"{kernel.id} is not divided among threads")
    jobs: Any = kernel.divide(kernel.params, problem, exercise.threads)
    largest = max(job.rows * job.cols for job in jobs.rectangles)
    rows, vectors = int(chosen["MR"]), int(chosen["NV"])
    return {
        "largest": 1000 * largest * exercise.threads / (problem.m * problem.n),
        "loads": 1000 * (rows + vectors) / (rows * vectors),
    }  # fmt: skip


def _pieces(exercise: ChoiceExercise, kernel: Kernel, chosen: Chosen) -> Figures:
    """Return the roundings of the longest chain: those within a piece, plus those of adding the sums of all pieces."""
    count, pieces = int(exercise.size), int(chosen["PIECES"])
    return {"roundings": float(sum(kernel.roundings({}, {"n": n}) or 0 for n in (-(-count // pieces), pieces)))}


def _latency(_exercise: ChoiceExercise, _kernel: Kernel, chosen: Chosen) -> Figures:
    """Return the cycles of 1000 additions into the chosen number of accumulators.

    It is the larger of the bound by the latency of additions and the bound by the number that begin in a cycle.
    """
    return {"cycles": 1000 * max(_LATENCY / int(chosen["ACCUMULATORS"]), 1 / _UNITS)}


def _parts(_exercise: ChoiceExercise, _kernel: Kernel, chosen: Chosen) -> Figures:
    """Return the number of chosen products of bfloat16 parts, and the largest relative error of their sum.

    The error is that of products of random float32 numbers, in float32's unit roundoffs.
    """
    rng = np.random.default_rng(0)
    a, b = (rng.uniform(-1, 1, (_PART_EXTENT, _PART_EXTENT)).astype(np.float32) for _ in "ab")
    of_a, of_b = _bfloats(a), _bfloats(b)
    taken = [(i, j) for i in range(_PARTS) for j in range(_PARTS) if chosen[f"A{i + 1}B{j + 1}"]]
    # Products of parts are exact in float64: what is left out is the only error.
    terms = sum((np.einsum("ik,kj->ikj", of_a[i], of_b[j]) for i, j in taken), np.zeros((_PART_EXTENT,) * 3))
    exact = np.einsum("ik,kj->ikj", a.astype(np.float64), b.astype(np.float64))
    return {"products": len(taken), "error": float(np.max(np.abs(terms - exact) / np.abs(exact)) / UNIT_ROUNDOFF)}


def _bfloats(x: npt.NDArray[np.float32]) -> list[npt.NDArray[np.float64]]:
    """Return three parts with the sum x: two are rounded to bfloat16's 8 bits, ties away from zero, and the rest."""
    found, rest = [], x
    for _ in range(_PARTS - 1):
        part = ((rest.view(np.uint32) + 0x8000) & 0xFFFF0000).view(np.float32)
        found.append(part)
        rest = rest - part
    return [part.astype(np.float64) for part in (*found, rest)]


_MEASURES: Mapping[str, Callable[[ChoiceExercise, Kernel, Chosen], Figures]] = {
    "caches": _caches, "division": _division, "pieces": _pieces, "latency": _latency, "parts": _parts,
}  # fmt: skip
