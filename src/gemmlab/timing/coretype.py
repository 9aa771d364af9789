"""Find the core types that OpenBLAS accepts here, and the fastest of them: OpenBLAS's own choice is not always the
best.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterable
from dataclasses import replace
from functools import cache

from gemmlab.core.errors import PeerError, UsageError
from gemmlab.core.stats import geometric_mean
from gemmlab.ops.gemm import GemmOp
from gemmlab.timing.arena import Arena
from gemmlab.timing.families import Timing
from gemmlab.timing.peer_libraries import find_library
from gemmlab.timing.peers import Spec, core_types
from gemmlab.timing.turns import Crew

PROBE_SIZES = "192,512,1024"
PROBE_ROUNDS = 5
_TIMING = Timing(min_us=2000.0, timeout_s=60.0)


def require_core_types(specs: Iterable[Spec]) -> None:
    """Raise `UsageError` if a requested core type is one that the library replaces by another: OpenBLAS does so
    silently.

    If the library does not start, nothing is raised here; the bench reports the reason.
    """
    for spec in specs:
        requested = spec.core_type
        if requested is None or requested.lower() == "best":
            continue
        taken = reported_core_type(spec.kind, requested)
        if taken is not None and not _same(requested, taken):
            working = [name for name in core_types() if reported_core_type(spec.kind, name) == name]
            raise UsageError(
                f"{spec.name}: {spec.kind} does not take the core type {requested!r}, it runs as {taken}; "
                f"core types that work here: {', '.join(working) or 'none that gemmlab knows of'}"
            )


@cache
def reported_core_type(kind: str, core_type: str) -> str | None:
    """Return the core type that `kind`, `"openblas"` or `"numpy"`, reports if `core_type` is requested.

    `None` if it does not run. The answer is cached for the process. Raises `PeerError` if OpenBLAS is not installed.
    """
    spec = Spec(kind, kind, core_type=core_type, path=find_library("openblas") if kind == "openblas" else None)
    op = GemmOp()
    problems = op.parse_sizes("16")
    with Arena(op, problems, seed=0) as arena, Crew(op, problems, arena, 1, _TIMING) as crew:
        if crew.join(spec) and crew.prepare(spec.name, 0):
            return str(crew.facts[spec.name].get("core_type"))
    return None


def with_best_core_type(spec: Spec, threads: int) -> Spec:
    """Return `spec` with the core type `"best"` replaced by the fastest one; others unchanged. The name stays.

    Raises `PeerError` as `best_core_type` does.
    """
    if spec.core_type is None or spec.core_type.lower() != "best":
        return spec
    return replace(spec, core_type=best_core_type(spec.kind, threads))


@cache
def best_core_type(kind: str, threads: int) -> str | None:
    """Return the fastest core type of `kind`, `"openblas"` or `"numpy"`; `None` if that is the library's own choice.

    Times the types that this processor can execute, interleaved, for a few seconds; the answer is cached for the
    process. Raises `PeerError` if the library is not installed or runs with none.
    """
    path = find_library("openblas") if kind == "openblas" else None
    specs = [Spec(core or "own choice", kind, core_type=core, path=path) for core in (None, *core_types())]
    op = GemmOp()
    problems = op.parse_sizes(PROBE_SIZES)
    times: dict[tuple[str, int], list[float]] = {}
    with Arena(op, problems, seed=0) as arena, Crew(op, problems, arena, threads, _TIMING) as crew:
        indices = range(len(problems))
        alive = [spec for spec in specs if crew.join(spec) and all(crew.prepare(spec.name, i) for i in indices)]
        # Leave out a type that the library replaces by another, and the one that its own choice already covers.
        distinct: dict[str, Spec] = {}
        for spec in alive:
            taken = str(crew.facts[spec.name].get("core_type"))
            if _same(spec.core_type, taken):
                distinct.setdefault(taken, spec)
        order, shuffle = list(distinct.values()), random.Random(0)  # noqa: S311 - an order, not a secret
        for _ in range(PROBE_ROUNDS):
            for index in indices:
                shuffle.shuffle(order)
                for spec in order:
                    turn = crew.turn(spec.name, index) if crew.can(spec.name, index) else None
                    if turn is not None:
                        times.setdefault((spec.name, index), []).append(turn["time_us"])
        scores = {
            spec.name: geometric_mean([statistics.median(times[spec.name, index]) for index in indices])
            for spec in order
            if crew.can(spec.name, 0)
        }
        if not scores:
            raise PeerError(f"{kind} runs with no core type: " + "; ".join(sorted(crew.lost.values())))
    best = min(scores, key=lambda name: scores[name])
    return next(spec.core_type for spec in order if spec.name == best)


def _same(requested: str | None, taken: str) -> bool:
    return requested is None or requested.lower() == taken.lower()
