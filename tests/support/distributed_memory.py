"""Products whose memory tests measure, on CPUs and on GPUs, and how much of it `gemmlab.distributed.gemm` states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

import gemmlab.distributed
from gemmlab.core.precision import FLOAT_BYTES
from gemmlab.distributed import Candidate, Choice, explain_choice, mesh_product, panels, redistribution
from gemmlab.distributed.mesh_parts import areas, parts_of, received_bytes
from support.distributed_scenes import kind, line_or_grid, spread

WORDS = 1 << 21
"""Elements of a panel and of messages in these tests, 8 MiB: less than the parts of the matrices."""
LINE, GRID = (4,), (2, 2)


@dataclass(frozen=True)
class Case:
    """One algorithm for operands with given extents (m, n, k) and layouts."""

    algorithm: str
    mesh: tuple[int, ...]
    extents: tuple[int, int, int]
    a: tuple[str, ...]
    b: tuple[str, ...]
    reproducible: bool = False


CASES = [
    # The part of C has 64 MiB.
    Case("rows", LINE, (32768, 2048, 64), ("rows",), ("rows",)),
    Case("grid", GRID, (8192, 8192, 64), ("rows", "columns"), ("rows", "columns")),
    # B, 64 MiB on each rank, is sent in panels.
    Case("rows", LINE, (64, 1024, 65536), ("rows",), ("rows",)),
    Case("rows", GRID, (64, 1024, 65536), ("rows", "rows"), ("rows", "rows")),
    Case("rows", LINE, (64, 1024, 65536), ("rows",), ("rows",), reproducible=True),
    # B is redistributed.
    Case("columns", LINE, (64, 1024, 65536), ("rows",), ("rows",)),
    Case("grid", GRID, (64, 1024, 65536), ("columns", "rows"), ("columns", "rows")),
    # A, a sum of 64 MiB on each rank, is added into rows.
    Case("rows", LINE, (16384, 64, 1024), ("sum",), ("replica",)),
    # Partial sums of all of C, 64 MiB.
    Case("k", LINE, (4096, 4096, 256), ("columns",), ("rows",)),
    Case("k", GRID, (4096, 4096, 256), ("columns", "columns"), ("rows", "rows")),
]


def stated(case: Case, way: Candidate) -> int:
    """The bytes that a rank may take beside its shards: by the docstring of `gemmlab.distributed.gemm`."""
    m, n, k = case.extents

    def part(shape: tuple[int, int], layout: tuple[str, ...]) -> int:
        return int(areas(parts_of(shape, layout, case.mesh)).max())

    words, messages = 0, False
    for shape, before, into in (((m, k), case.a, way.a), ((k, n), case.b, way.b)):
        if received_bytes(shape, before, into, case.mesh) > 0:
            words, messages = words + part(shape, into), True
    if way.sums:
        return FLOAT_BYTES * (words + part((m, n), way.sums) * 3 // 2 + 2 * redistribution.WORDS)
    words += part((m, n), way.c)
    rows, columns = parts_of((m, n), way.c, case.mesh)[:, 1] - parts_of((m, n), way.c, case.mesh)[:, 0]
    sent = [("columns" in way.a, rows.max()), ("rows" in way.b, columns.max())]
    fixed = case.reproducible or all(one for one, _ in sent)
    buffers = sum(2 * (int(lines) * min(k, panels.PANEL) if fixed else panels.WORDS) for one, lines in sent if one)
    return FLOAT_BYTES * (words + max(buffers, 2 * redistribution.WORDS if messages else 0))


def measured(_rank: int, peak: Callable[[Callable[[], Any]], int]) -> list[tuple[Case, int, int]]:
    """For each case, the most bytes that a call took beside its shards, by `peak`, and the bytes stated."""
    vars(panels)["WORDS"], vars(redistribution)["WORDS"] = WORDS, WORDS
    found = []
    for case in CASES:
        mesh = line_or_grid(*case.mesh)
        m, n, k = case.extents
        a, b = (
            spread(torch.ones(shape, device=kind()), mesh, places)
            for shape, places in (((m, k), case.a), ((k, n), case.b))
        )
        ways = {one.algorithm: one for one in explain_choice(a, b, reproducible=case.reproducible).considered}
        way = ways[case.algorithm]
        vars(mesh_product)["explain_choice"] = lambda *_, way=way, **__: Choice(way, (way,))

        def call(a: Any = a, b: Any = b, case: Case = case) -> Any:
            return gemmlab.distributed.gemm(a, b, reproducible=case.reproducible)

        # The first call connects ranks and compiles kernels.
        call()
        found.append((case, peak(call), stated(case, way)))
    return found
