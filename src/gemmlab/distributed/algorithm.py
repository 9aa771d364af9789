"""The algorithm for a product of DTensors: the one with the least predicted time.

A rank receives bytes before the product, when an operand is redistributed, and during the product, as panels; for the
algorithm `"k"` it receives partial sums after the product instead of panels. The predicted time is the sum of the
redistribution, the reduction of partial sums, the first panel's transfer if no product can begin before it, and the
longer one of two: the products, or the transfer of the other panels with the last panel's product. Products that add to
the same part of C read and write it once more each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

from gemmlab.core.errors import ArgumentTypeError
from gemmlab.core.numerals import duration, plain
from gemmlab.core.precision import FLOAT_BYTES
from gemmlab.dispatch.precision_rule import HIGHEST, METHODS
from gemmlab.distributed.panel_turns import Turn, terms_of, turns_of
from gemmlab.distributed.placements import COLUMNS, REPLICA, ROWS, SUM, words
from gemmlab.distributed.placements import share as part_of

LINK = {"cuda": 383e9, "cpu": 2e9}
"""Bytes a second that a rank receives. cuda: measured between two H200s over NVLink; cpu: gloo on one host."""
RATE = {"cuda": {"highest": 55.5e12, "float32": 167e12, "tf32": 380e12}, "cpu": {"highest": 100e9}}
"""Floating-point operations a second of one rank by device and precision; cuda: large products on one H200.

Other precisions have the rate of `"highest"`.
"""
CONVERTS = ("float32", *METHODS)
"""Precisions whose kernels convert both operands before they multiply."""
LEAST_TERMS, LEAST_TERMS_CONVERTED = 8192, 2048
"""The fewest terms of k that a panel with all lines (rows of A or columns of B) must have room for, if such panels are
to be sent in place of panels with some lines (`Candidate.by_terms`). Panels of fewer terms would cost too many passes
over C. The second number is for precisions in `CONVERTS`.
"""
MEMORY = {"cuda": 4.0e12, "cpu": 10e9}
"""Bytes of C that a rank reads and writes in a second, both added, by kind of device."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One algorithm with its layouts, transfers and predicted time."""

    algorithm: str
    """`"rows"`: each rank makes rows of C; `"columns"`: columns; `"grid"`: rows along the first dimension of the mesh,
    columns along the second; `"k"`: each rank multiplies its part of k, and the partial sums are reduced; `"local"`:
    each rank has both operands and makes all of C."""
    a: tuple[str, ...]
    """Layouts of A and B when the algorithm begins, and of the result: a word (`placements.py`) for each dimension of
    the mesh.
    """
    b: tuple[str, ...]
    c: tuple[str, ...]
    bytes_before: float
    """Bytes that a rank receives when operands are redistributed."""
    bytes_meanwhile: float
    """Bytes that a rank receives as panels of operands, or as partial sums of the algorithm `"k"`."""
    seconds: float
    """Predicted time of the call, in seconds."""
    by_terms: bool = False
    """True if panels have some terms of k and all lines (`panel_turns.py`)."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The algorithm of a call, and all algorithms that were considered, the one predicted fastest first."""

    best: Candidate
    considered: tuple[Candidate, ...]

    @property
    def reason(self) -> str:
        """One sentence with the algorithm's bytes and predicted time, and the other algorithms' times."""
        best = self.best
        moved = f"{plain(best.bytes_before / 1e6)} MB before and {plain(best.bytes_meanwhile / 1e6)} MB "
        moved += "afterwards" if best.algorithm == "k" else "meanwhile"
        others = ", ".join(f"{one.algorithm} {duration(one.seconds * 1e6)}" for one in self.considered[1:])
        return f"{best.algorithm}: each rank receives {moved}, {duration(best.seconds * 1e6)} predicted" + (
            f" (others: {others})" if others else ""
        )

    def __str__(self) -> str:
        return self.reason


def explain_choice(a: Any, b: Any, *, precision: str = HIGHEST, reproducible: bool = False) -> Choice:
    """Return the choice of `gemmlab.distributed.gemm` for the DTensors `a` (m x k) and `b` (k x n). Nothing is sent. An
    unknown `precision` has the rate of `"highest"`.

    Raises `ArgumentTypeError` for other operands.
    """
    for name, x in (("a", a), ("b", b)):
        if not hasattr(x, "device_mesh"):
            raise ArgumentTypeError(
                f"gemmlab.distributed.explain_choice: {name} is {type(x).__qualname__}; it must be a DTensor"
            )
    return choose(
        (a.shape[0], b.shape[1], a.shape[1]), words(a.placements), words(b.placements), tuple(a.device_mesh.shape),
        a.device_mesh.device_type, precision=precision, reproducible=reproducible,
    )  # fmt: skip


@lru_cache(maxsize=256)
def choose(
    extents: tuple[int, int, int], a: tuple[str, ...], b: tuple[str, ...], mesh: tuple[int, ...], device: str, *,
    precision: str = HIGHEST, reproducible: bool = False, link: float | None = None,
) -> Choice:  # fmt: skip
    """Return the choice for C = A B, A m x k and B k x n, both float32; `extents` is (m, n, k).

    `a` and `b` are the layouts: a word (`placements.py`) for each dimension of the mesh. The result depends on the
    arguments alone, so all ranks choose the same. Of equally fast algorithms the first in `_algorithms` is taken. With
    `reproducible`, only algorithms are considered whose order of sums does not depend on the number of ranks. `link` is
    the bytes a second that a rank receives, by default those in `LINK`.
    """
    m, n, k = extents
    ranks, kind = prod(mesh), device if device in LINK else "cpu"
    link, rates = LINK[kind] if link is None else link, RATE[kind]
    rate = rates.get(precision, rates[HIGHEST])
    found = list[Candidate]()
    for algorithm, into_a, into_b, into_c in _algorithms(a, b, mesh):
        if reproducible and algorithm == "k":
            continue
        before = _moved(m * k, a, into_a, mesh) + _moved(k * n, b, into_b, mesh)
        panels_a, panels_b = _panels(m * k, into_a, COLUMNS, mesh), _panels(k * n, into_b, ROWS, mesh)
        meanwhile = panels_a + panels_b
        after, share = 0.0, 1 if algorithm == "local" else ranks
        share_m, share_n = -(-m // _cut(into_c, ROWS, mesh)), -(-n // _cut(into_c, COLUMNS, mesh))
        stay, lines = (share_n, share_m) if panels_a else (share_m, share_n)
        least = LEAST_TERMS_CONVERTED if precision in CONVERTS else LEAST_TERMS
        by_terms = terms_of(lines) >= least and _hides_one_owner(stay, ranks, rate, link)
        turns = turns_of(
            share_m, share_n, k, sends_a=panels_a > 0, sends_b=panels_b > 0, fixed=reproducible,
            own=part_of(k, mesh[-1] if panels_a else mesh[0], 0), by_terms=by_terms,
        )  # fmt: skip
        written = sum(len(one.rows) * len(one.columns) * len(one.parts) for one in turns)
        again = 2.0 * FLOAT_BYTES * max(0, written - share_m * share_n)
        if algorithm == "k":
            meanwhile, after, again = 0.0, FLOAT_BYTES * m * n * (ranks - 1) / ranks, 0.0
        work = 2.0 * m * n * k / share / rate + again / MEMORY[kind]
        travel = meanwhile / link
        first, last = (_part(turns[at], (share_m, share_n, k)) if turns else 0.0 for at in (0, -1))
        waits = 0.0 if turns and turns[0].own else travel * first
        seconds = (before + after) / link + waits + max(work, travel - waits + work * last)
        found.append(Candidate(algorithm, into_a, into_b, into_c, before, meanwhile + after, seconds, by_terms))
    found.sort(key=lambda one: one.seconds)
    return Choice(found[0], tuple(found))


def _hides_one_owner(stay: int, ranks: int, rate: float, link: float) -> bool:
    """Return whether a panel of some terms is multiplied by `stay` rows or columns for longer than its owner needs to
    send it to all others.
    """
    return 2.0 * stay / rate >= (ranks - 1) * FLOAT_BYTES / link


def _algorithms(
    a: tuple[str, ...], b: tuple[str, ...], mesh: tuple[int, ...]
) -> list[tuple[str, tuple[str, ...], tuple[str, ...], tuple[str, ...]]]:
    """Return the algorithms for a mesh, each with the layouts of A, B and C.

    Where k of an operand would be cut, a replicated operand stays replicated, except for the algorithm `"k"`.
    """
    if len(mesh) == 1:
        whole_a, whole_b = a[0] == REPLICA, b[0] == REPLICA
        found = [("local", (REPLICA,), (REPLICA,), (REPLICA,))] if whole_a and whole_b else []
        return [
            ("rows", (ROWS,), (REPLICA if whole_b else ROWS,), (ROWS,)),
            ("columns", (REPLICA if whole_a else COLUMNS,), (COLUMNS,), (COLUMNS,)),
            ("k", (COLUMNS,), (ROWS,), (ROWS,)),
            *found,
        ]
    a_along, b_along = REPLICA if a[1] == REPLICA else COLUMNS, REPLICA if b[0] == REPLICA else ROWS
    return [("grid", (ROWS, a_along), (b_along, COLUMNS), (ROWS, COLUMNS))]


def _cut(words_of_c: tuple[str, ...], cut: str, mesh: tuple[int, ...]) -> int:
    """Return into how many ranges of rows (`cut` is `ROWS`) or of columns (`cut` is `COLUMNS`) C is cut."""
    return prod(ranks for word, ranks in zip(words_of_c, mesh, strict=True) if word == cut)


def _part(turn: Turn, extents: tuple[int, int, int]) -> float:
    """Return the fraction, 0 to 1, of a rank's m x n x k multiply-adds that a turn has."""
    return len(turn.rows) * len(turn.columns) * len(turn.terms) / max(1, prod(extents))


def _panels(elements: int, into: tuple[str, ...], cut: str, mesh: tuple[int, ...]) -> float:
    """Return the bytes that a rank receives as panels of one operand; 0 if the operand is not cut along k.

    `cut` is the word for a cut along k: `COLUMNS` for A, `ROWS` for B.
    """
    size = float(FLOAT_BYTES * elements)
    for word, ranks in zip(into, mesh, strict=True):
        if word not in (cut, REPLICA):
            size /= ranks
    for word, ranks in zip(into, mesh, strict=True):
        if word == cut:
            size *= (ranks - 1) / ranks
            return size
    return 0.0


def _moved(elements: int, before: Sequence[str], into: Sequence[str], mesh: Sequence[int]) -> float:
    """Return the bytes that a rank receives when an operand is redistributed, one dimension of the mesh at a time."""
    size, total = float(FLOAT_BYTES * elements), 0.0
    for old, ranks in zip(before, mesh, strict=True):
        size /= ranks if old in (ROWS, COLUMNS) else 1
    for old, new, ranks in zip(before, into, mesh, strict=True):
        others = (ranks - 1) / ranks
        if old == SUM:
            total += size * others * (2 if new == REPLICA else 1)
            size /= 1 if new == REPLICA else ranks
        elif old == REPLICA:
            size /= 1 if new == REPLICA else ranks
        elif new == REPLICA:
            total += size * (ranks - 1)
            size *= ranks
        elif new != old:
            total += size * others
    return total
