"""The algorithm for a product of DTensors: the one with the least predicted time.

A rank receives bytes before the product, when an operand is redistributed, and during the product, as panels. If each
rank multiplies a part of k, it receives partial sums after the product instead of panels. The predicted time is the sum
of the redistribution, the reduction of partial sums, the first panel's transfer if no product can begin before it, and
the longer one of two: the products, or the transfer of the other panels with the last panel's product. Products that
add to the same part of C read and write it once more each.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

from gemmlab.core.errors import ArgumentTypeError, UsageError
from gemmlab.core.precision import FLOAT_BYTES
from gemmlab.dispatch.precision_rule import HIGHEST, METHODS
from gemmlab.distributed.candidate import Candidate, Choice
from gemmlab.distributed.mesh_algorithms import algorithms
from gemmlab.distributed.mesh_parts import received_bytes
from gemmlab.distributed.panel_turns import Turn, terms_of, turns_of
from gemmlab.distributed.placements import COLUMNS, REPLICA, ROWS, words
from gemmlab.distributed.placements import share as part_of

EXPLAIN = "gemmlab.distributed.explain_choice"
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


def explain_choice(a: Any, b: Any, *, precision: str = "highest", reproducible: bool = False) -> Choice:
    """Return the choice of `gemmlab.distributed.gemm` for the DTensors `a` (m x k) and `b` (k x n). Nothing is sent. An
    unknown `precision` has the rate of `"highest"`.

    Raises `ArgumentTypeError` for other operands, `UsageError` for shapes and meshes that do not fit.
    """
    for name, x in (("a", a), ("b", b)):
        if not hasattr(x, "device_mesh"):
            raise ArgumentTypeError(f"{EXPLAIN}: {name} is {type(x).__qualname__}; it must be a DTensor")
        if x.ndim != 2:
            raise UsageError(f"{EXPLAIN}: {name} has {x.ndim} dimensions; it must have 2")
        if x.device_mesh.ndim not in (1, 2):
            raise UsageError(f"{EXPLAIN}: the mesh has {x.device_mesh.ndim} dimensions; it may have 1 or 2")
    if a.shape[1] != b.shape[0]:
        raise UsageError(f"{EXPLAIN}: a has {a.shape[1]} columns and b has {b.shape[0]} rows: k differs")
    if a.device_mesh != b.device_mesh:
        raise UsageError(f"{EXPLAIN}: b lies on another mesh than a")
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
    arguments alone, so all ranks choose the same. Of equally fast algorithms the first in `algorithms` is taken. With
    `reproducible`, only algorithms are considered whose order of sums does not depend on the number of ranks. `link` is
    the bytes a second that a rank receives, by default those in `LINK`.
    """
    m, n, k = extents
    ranks, kind = prod(mesh), device if device in LINK else "cpu"
    link, rates = LINK[kind] if link is None else link, RATE[kind]
    rate = rates.get(precision, rates[HIGHEST])
    found = list[Candidate]()
    for one in algorithms(a, b):
        if reproducible and one.sums:
            continue
        before = received_bytes((m, k), a, one.a, mesh) + received_bytes((k, n), b, one.b, mesh)
        after = received_bytes((m, n), one.sums, one.c, mesh) if one.sums else 0.0
        # Without partial sums an operand that is cut along k is sent.
        panels_a = 0.0 if one.sums else _panels((m, k), one.a, COLUMNS, mesh)
        panels_b = 0.0 if one.sums else _panels((k, n), one.b, ROWS, mesh)
        meanwhile = panels_a + panels_b
        share_m, share_n = -(-m // _cut(one.c, ROWS, mesh)), -(-n // _cut(one.c, COLUMNS, mesh))
        stay, lines = (share_n, share_m) if panels_a else (share_m, share_n)
        least = LEAST_TERMS_CONVERTED if precision in CONVERTS else LEAST_TERMS
        owners = _cut(one.a, COLUMNS, mesh) if panels_a else _cut(one.b, ROWS, mesh)
        by_terms = terms_of(lines) >= least and _hides_one_owner(stay, owners, rate, link)
        turns = turns_of(
            share_m, share_n, k, sends_a=panels_a > 0, sends_b=panels_b > 0, fixed=reproducible,
            own=part_of(k, owners, 0), by_terms=by_terms,
        )  # fmt: skip
        written = sum(len(turn.rows) * len(turn.columns) * len(turn.parts) for turn in turns)
        again = 0.0 if one.sums else 2.0 * FLOAT_BYTES * max(0, written - share_m * share_n)
        work = 2.0 * m * n * k / (1 if one.name == "local" else ranks) / rate + again / MEMORY[kind]
        travel = meanwhile / link
        first, last = (_part(turns[at], (share_m, share_n, k)) if turns else 0.0 for at in (0, -1))
        waits = 0.0 if turns and turns[0].own else travel * first
        seconds = (before + after) / link + waits + max(work, travel - waits + work * last)
        found.append(Candidate(one.name, one.a, one.b, one.c, before, meanwhile + after, seconds, by_terms, one.sums))
    found.sort(key=lambda one: one.seconds)
    return Choice(found[0], tuple(found))


def _hides_one_owner(stay: int, ranks: int, rate: float, link: float) -> bool:
    """Return whether a panel of some terms is multiplied by `stay` rows or columns for longer than its owner needs to
    send it to all others.
    """
    return 2.0 * stay / rate >= (ranks - 1) * FLOAT_BYTES / link


def _cut(layout: tuple[str, ...], cut: str, mesh: tuple[int, ...]) -> int:
    """Return into how many ranges of rows (`cut` is `ROWS`) or of columns (`cut` is `COLUMNS`) a matrix is cut."""
    return prod(ranks for word, ranks in zip(layout, mesh, strict=True) if word == cut)


def _part(turn: Turn, extents: tuple[int, int, int]) -> float:
    """Return the fraction, 0 to 1, of a rank's m x n x k multiply-adds that a turn has."""
    return len(turn.rows) * len(turn.columns) * len(turn.terms) / max(1, prod(extents))


def _panels(shape: tuple[int, int], into: tuple[str, ...], cut: str, mesh: tuple[int, ...]) -> float:
    """Return the most bytes that a rank receives as panels of one operand; 0 if the operand is not cut along k.

    `cut` is the word for a cut along k: `COLUMNS` for A, `ROWS` for B. Panels bring what a rank lacks of all terms.
    """
    return received_bytes(shape, into, [REPLICA if word == cut else word for word in into], mesh)
