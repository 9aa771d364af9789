"""The end of a check: runs with rows far apart, and for a kernel that failed, the search for the conditions under which
it is right.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gemmlab.core.counters import Observation
from gemmlab.core.errors import UsageError
from gemmlab.core.hazard import UNWRITTEN, Hazard
from gemmlab.core.hazard_source import with_source
from gemmlab.core.program import Artifact
from gemmlab.core.time_limit import require_time
from gemmlab.devices.device import CountingDevice, SparseDevice
from gemmlab.kernels.bound import PlacedKernel
from gemmlab.kernels.fitting import with_factors
from gemmlab.ops.declared import OperationError
from gemmlab.ops.op import Op, Operand
from gemmlab.sass.source_places import with_call_sites
from gemmlab.verify.condition import Condition
from gemmlab.verify.elementwise import Comparison
from gemmlab.verify.far_rows import far_rows, run_far
from gemmlab.verify.guarded_run import GuardedRun, compare_results
from gemmlab.verify.hazard_operands import with_operands
from gemmlab.verify.passes_where import passes_where

Places = Mapping[str, tuple[int, Operand | None]]


@dataclass(frozen=True, slots=True)
class FarCase:
    """The outcome of a problem in which the rows of `operand` lie far apart."""

    operand: str
    problem: Any
    comparisons: Sequence[Comparison]
    hazards: tuple[Hazard, ...]


def described(artifact: Artifact | None, hazards: Iterable[Hazard], places: Places) -> tuple[Hazard, ...]:
    """Return hazards of a run with source lines, call sites and the names of arrays.

    `artifact` is the code that ran; if it is `None`, none are returned. `places` are the arrays' addresses in global
    memory.
    """
    every = tuple(hazards)
    if artifact is None or not every:
        return ()
    named = {name.upper() if shape is not None else name: (at, shape) for name, (at, shape) in places.items()}
    found = with_call_sites(with_source(every), artifact)
    return tuple(with_operands(found, named))


def far_cases(
    placed: PlacedKernel, op: Op, needed: Sequence[Condition] = (), *, threads: int, seed: int
) -> Iterator[FarCase]:
    """Yield the outcome of each problem of `far_rows` that fulfils the conditions `needed`.

    Yields nothing on a device without sparse memory; problems for which a GPU has too little memory are left out.
    """
    if not isinstance(placed.device, SparseDevice):
        return
    for far in far_rows(placed, op, lambda problem: all(condition.holds(problem) for condition in needed)):
        require_time(placed.kernel.id)
        contents = op.fill(far.problem, np.random.default_rng(seed))
        try:
            run = run_far(placed, op, far, contents, threads=threads)
        except MemoryError:
            continue  # The same kernel on the emulator has the case.
        hazards = _serious(run.observation, wrong=any(one.mismatch for one in run.comparisons))
        yield FarCase(far.name, far.problem, run.comparisons, described(run.artifact, hazards, run.places))


def _serious(observation: Observation | None, *, wrong: bool) -> tuple[Hazard, ...]:
    """Return a run's hazards. Unless its result is `wrong`, leave out reads of unwritten memory: they may reach no
    result.
    """
    hazards = observation.hazards if observation else ()
    return tuple(hazard for hazard in hazards if wrong or hazard.kind != UNWRITTEN)


def needs(
    placed: PlacedKernel, op: Op, planned: Sequence[Any], failing: Sequence[Any], passing: Sequence[Any],
    *, threads: int, seed: int,
) -> tuple[Sequence[Condition] | None, bool]:  # fmt: skip
    """Return the result of `passes_where`, the conditions under which the kernel is right, and True.

    If it takes no problem of whole tiles, return `None` and False: nothing was found out. `planned` are the problems of
    the check; `failing` are problems at which the kernel fails, `passing` those at which it is right. An extent is 0
    only if it is in one of `planned`; where a function of a user's operation fails, the operation has no such problem.
    A kernel of such an operation is right at an extent if it is with the contents of every scale in `planned`.
    """
    empty = {name for problem in planned for name in op.extents if getattr(problem, name, 1) == 0}
    scales = {problem.scale for problem in planned if hasattr(problem, "scale")}

    def passes(problem: Any, shift: int) -> bool | None:
        problem = with_factors(placed.kernel, op, problem)
        if placed.kernel.refusal(placed.config, op.scalars(problem)):
            return None
        if any(getattr(problem, name, 1) == 0 for name in {*op.extents} - empty):
            return None
        require_time(placed.kernel.id)
        alike = [replace(problem, scale=scale) for scale in sorted(scales)] or [problem]
        try:
            return all(right(each, shift) for each in alike)
        except OperationError:
            return None

    def right(problem: Any, shift: int) -> bool:
        contents = op.fill(problem, np.random.default_rng(seed))
        case = GuardedRun(placed, op, problem, contents, shift=shift, apart=False, threads=threads)
        observation = case.run()
        if _serious(observation, wrong=False):
            return False
        if any(guarded.violations() for guarded in case.guarded.values()):
            return False
        return not any(one.mismatch for one in compare_results(placed, op, problem, contents, case.guarded))

    # A wrong address would end the use of a GPU by this process.
    addresses = isinstance(placed.device, CountingDevice)
    try:
        return passes_where(placed.kernel, op, passes, failing, passing, addresses=addresses), True
    except UsageError:
        return None, False
