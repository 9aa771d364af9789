"""Products in pieces for tests: the least pieces, and runs that end between two pieces."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import gemmlab
from gemmlab.dispatch.piece_plan import PiecePlan
from gemmlab.pieces import cut


class Stopped(Exception):  # noqa: N818 - it is no error
    """Raised by a progress function."""


def smallest(frame: PiecePlan, limits: cut.Limits) -> PiecePlan:
    """The least pieces, though the whole product would fit as well."""
    rows, cols = (cut._extent(frame, limits, axis, math.inf) for axis in (0, 1))
    return cut.sized(frame, limits, rows, cols, Path("journal"))


def stop_at(least: int) -> Callable[[int, int], None]:
    """Return a progress function that ends the call once so many pieces are complete."""

    def stop(done: int, _count: int) -> None:
        if done >= least:
            raise Stopped

    return stop


def in_two_runs(first: int, **call: Any) -> tuple[int, int]:
    """Compute `first` pieces or more, then the others; return the pieces complete between the runs, and all."""
    with suppress(Stopped):
        gemmlab.gemm(**call, progress=stop_at(first))
    seen: list[tuple[int, int]] = []
    gemmlab.gemm(**call, progress=lambda *now: seen.append(now))
    assert seen[-1][0] == seen[-1][1]
    return seen[0]
