"""Tuning of one kernel at the problems of a subject: the search, its result, and the effect of each parameter."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from gemmlab.analysis.subject import machine
from gemmlab.core.errors import CompileError, GemmlabError, UsageError, WrongResultError
from gemmlab.core.hardware import usable_cpus
from gemmlab.core.numerals import plain
from gemmlab.core.words import counted
from gemmlab.dispatch.waves import gpu_of_facts
from gemmlab.kernels.digest import source_digest
from gemmlab.kernels.fitting import factor_notes
from gemmlab.kernels.kernel import Kernel
from gemmlab.results.sensitivity import Point, Sensitivity, sensitivity
from gemmlab.tuning.builders import Builders
from gemmlab.tuning.device_bench import DeviceBench, Subject
from gemmlab.tuning.emulated_bench import EmulatedBench
from gemmlab.tuning.forecast import Multiprocessors, forecasts
from gemmlab.tuning.journal import Journal, JournaledBench
from gemmlab.tuning.outcomes import Bench
from gemmlab.tuning.search import Progress, Search, Standing
from gemmlab.tuning.strategies import Halving, Strategy, run_within_budget
from gemmlab.tuning.vicinity import look_around

FOR_SEARCH = 0.85
"""The fraction of the budget for the search; the rest is for configurations that differ little from its result."""
_USUAL_S = 60.0
"""A budget in seconds that is enough for most kernels: the default of `gemmlab tune`."""
Report = Callable[[Progress], object]


@dataclass(frozen=True, slots=True)
class Row:
    """One configuration with a time."""

    config: Mapping[str, int]
    us: float
    """The median of `samples`, microseconds."""
    samples: tuple[float, ...]
    """The time of a call in each turn (`outcomes.Turn.us`), microseconds."""
    facts: Mapping[str, float] = field(default_factory=dict)
    """`Build.facts` of the configuration."""

    @property
    def turns(self) -> int:
        """The number of turns (`outcomes.Turn`) of the configuration: one for each of `samples`."""
        return len(self.samples)


@dataclass(frozen=True, slots=True)
class Tuning:
    """The outcome of one search."""

    kernel: str
    op: str
    size: str
    problem: Mapping[str, Any]
    device: str
    predicted: bool
    """True if the times are predicted and not measured."""
    best: Row
    default: Row | None
    """The default configuration; `None` if it has no time."""
    rows: tuple[Row, ...]
    """All configurations with times, the least median first."""
    faults: Mapping[str, str]
    """Configuration as text -> reason why it cannot win: it does not compile, does not run, or its result is wrong."""
    legal: int
    """Number of legal configurations."""
    tried: int
    """Number of configurations with a time or a fault."""
    seconds: float
    """Time that the search took, all its runs together."""
    budget_s: float
    """Time limit of the search, in seconds."""
    digest: str
    """Digest of the kernel's source."""
    journal: str
    sensitivity: Sensitivity
    traits: tuple[str, ...] = ()
    """Operands that the kernel reads though their factor is 0 (`factor_notes`)."""

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return asdict(self)


def tune(
    of: Subject, budget_s: float, folder: Path, *, strategy: Strategy | None = None, fresh: bool = False,
    report: Report = lambda _progress: None,
) -> Tuning:  # fmt: skip
    """Search the space of a subject within a budget in seconds, and return the outcome.

    The search continues from its journal in `folder`, if there is one; with `fresh`, that is emptied first. `report` is
    called when configurations are submitted and after each turn. Raises `CompileError` if no configuration tried
    compiles, `WrongResultError` if some compile and all tried have a fault, `UsageError` if the budget ends before one
    is tried, another process runs the same search (not noticed on Windows) or the journal cannot be written,
    `RecordError` for a damaged journal, and `KeyboardInterrupt`; the journal then has all outcomes so far.
    """
    kernel, predicted = of.named.kernel, of.device.family == "emulated"
    header = header_of(of)
    path = folder / f"{kernel.id}-{key_of(header)}.jsonl"
    with _bench(of) as bench, Journal(path, of.space, header, fresh=fresh) as journal:
        search = Search(
            of.space, JournaledBench(bench, journal), FOR_SEARCH * budget_s, forecast=_forecast(of), exact=predicted,
            report=report,
        )  # fmt: skip
        run_within_budget(strategy or Halving(), search)
        best = search.best()
        if best is None:
            raise _nothing_right(kernel, search, budget_s)
        search.budget_s = budget_s
        best = look_around(search, best)
        return _outcome(of, search, best, path, predicted=predicted)


def header_of(of: Subject) -> dict[str, Any]:
    """Return the facts that a search depends on, which are the first line of its journal."""
    info, kernel = of.device.describe(), of.named.kernel
    return {
        "title": f"{kernel.id} at {of.label}", "kernel": kernel.id, "digest": source_digest(kernel), "op": of.op.name,
        "problems": [problem.to_json() for problem in of.problems], "device": info.name,
        "driver": str(info.facts.get("driver_cuda", "")), "mode": of.mode, "threads": of.threads,
        "flags": {name: str(value) for name, value in of.named.flags.items()}, "builders": len(usable_cpus()),
        "space": hashlib.sha256(repr(of.space.members).encode()).hexdigest()[:16],
    }  # fmt: skip


def key_of(header: Mapping[str, Any]) -> str:
    """Return the part of a journal's name that identifies the search: a digest of its header."""
    return hashlib.sha256(json.dumps(header, sort_keys=True).encode()).hexdigest()[:12]


@contextmanager
def _bench(of: Subject) -> Iterator[Bench]:
    if of.device.family == "emulated":
        _, gpu = machine(of.device.device_name.which or "")
        with Builders(of.named, len(usable_cpus())) as builders:
            yield EmulatedBench(of, gpu, builders)
        return
    with DeviceBench(of) as bench:
        yield bench


def _forecast(of: Subject) -> list[float]:
    """Return the forecast of every configuration; 1 for each on a processor."""
    if of.device.family == "cpu":
        return [1.0] * len(of.space)
    if of.device.family == "emulated":
        _, gpu = machine(of.device.device_name.which or "")
        where = Multiprocessors(gpu.limits, gpu.sms)
    else:
        info = of.device.describe()
        found = gpu_of_facts(info.name, info.facts)
        where = Multiprocessors(found.limits, found.sms)
    return forecasts(of.named.kernel, of.op, of.problem, of.space, where)


def _outcome(of: Subject, search: Search, best: Standing, path: Path, *, predicted: bool) -> Tuning:
    space, kernel = search.space, of.named.kernel
    rows = {one.place: _row(search, one) for one in search.ranking()}
    where = of.device.describe().name
    points = [Point(row.config, row.us) for place, row in rows.items() if place != best.place]
    found = sensitivity(
        f"{kernel.id} at {of.label} on {where}", Point(space.config(best.place), best.median), points,
        predicted=predicted,
    )  # fmt: skip
    progress = search.progress()
    return Tuning(
        kernel=kernel.id, op=of.op.name, size=of.label, problem=of.problem.to_json(), device=where,
        predicted=predicted, best=rows[best.place], default=rows.get(0), rows=tuple(rows.values()),
        faults={space.text(one.place): one.fault for one in search.faults()}, legal=len(space), tried=progress.tried,
        seconds=progress.seconds, budget_s=search.budget_s, digest=source_digest(kernel), journal=str(path),
        sensitivity=found, traits=tuple(factor_notes(kernel, of.op)),
    )  # fmt: skip


def _row(search: Search, one: Standing) -> Row:
    facts = one.build.facts if one.build is not None else {}
    return Row(search.space.config(one.place), one.median, tuple(one.us), dict(facts))


def _nothing_right(kernel: Kernel, search: Search, budget_s: float) -> GemmlabError:
    """Return the error of a search that timed no configuration: none compiles, every one has a fault, or the budget was
    too small.
    """
    faults = search.faults()
    if not faults:
        larger = max(_USUAL_S, 2.0 * budget_s, 2.0 * search.bench.seconds)
        return UsageError(
            f"{kernel.id}: no configuration was timed in {plain(search.budget_s)} s, the part of the budget of "
            f"{plain(budget_s)} s that the search has; a larger budget, such as {larger:.0f} s for each size, "
            "continues from here (--budget)"
        )
    first = f"{search.space.text(faults[0].place)}: {faults[0].fault}"
    if all(one.verdict is None and one.build is not None and one.build.fault for one in faults):
        return CompileError(f"{kernel.id}: none of {counted(len(faults), 'configuration')} tried compiles; {first}")
    return WrongResultError(f"{kernel.id}: none of {counted(len(faults), 'configuration')} tried can win; {first}")
