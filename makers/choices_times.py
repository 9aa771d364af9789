"""Times of kernels by product, from sweeps and from records of `gemmlab bench`. Their entries have no figures yet."""

from __future__ import annotations

import gzip
import json
import math
import statistics
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gemmlab.core.errors import UsageError
from gemmlab.core.program import Config
from gemmlab.dispatch.measurements import Figures, Measurement, Table, time_key
from gemmlab.dispatch.waves import PARTS
from gemmlab.kernels.aliases import read_record
from gemmlab.kernels.catalog import find_kernel
from gemmlab.kernels.kernel import NO_MEMORY
from gemmlab.ops.catalog import find_op
from gemmlab.ops.gemm import GemmOp
from gemmlab.ops.gemm_problem import GemmProblem
from quick_times import Trial

OP = GemmOp()
HICCUP_US = 50.0
"""A sweep runs a trial once if its first run is slow. A rare run takes some 15 us more than all others, which is enough
to seem slow at small products.
"""
NEAR = 1.03
"""The table states a time if it is at most this many times the least time of the product."""


@dataclass(frozen=True, slots=True)
class Times:
    """One kernel and configuration: its entry without figures, and its times in microseconds by product and number of
    parts of k.
    """

    base: Measurement
    us: Mapping[tuple[GemmProblem, int], float] = field(default_factory=dict)

    @property
    def problems(self) -> set[GemmProblem]:
        """The products that were timed, in any number of parts."""
        return {problem for problem, _ in self.us}


def least(times: Iterable[Times]) -> dict[tuple[GemmProblem, str], float]:
    """Return the least time of each product at each precision."""
    found: dict[tuple[GemmProblem, str], float] = {}
    for one in times:
        for (problem, _), us in one.us.items():
            key = problem, one.base.precision
            found[key] = min(us, found.get(key, math.inf))
    return found


def stated(one: Times, best: Mapping[tuple[GemmProblem, str], float]) -> dict[str, float]:
    """Return the times of one kernel and configuration that the table states: those near `best`, the least times."""
    return {
        time_key(problem, parts): round(us, 2)
        for (problem, parts), us in one.us.items()
        if us <= NEAR * best[problem, one.base.precision]
    }


def without_times(known: Table) -> Table:
    """Return a table by which every choice is an estimate."""
    return replace(known, entries=tuple(replace(entry, times_us={}) for entry in known.entries))


def is_hiccup(line: Mapping[str, Any]) -> bool:
    """Return whether the time of a line of a sweep may be that of something else: a single run that took less than
    `HICCUP_US`.
    """
    return bool(line["runs"] == 1 and line["us"] < HICCUP_US)


def by_date(paths: Iterable[Path]) -> list[Path]:
    """Return sweeps in the order of their dates."""

    def date(path: Path) -> str:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            return str(json.loads(next(file))["environment"]["time_utc"])

    return sorted(paths, key=date)


def swept(
    paths: Sequence[Path], op: str = OP.name, left_out: Collection[str] = ()
) -> tuple[str, list[Times]]:  # fmt: skip
    """Return the date of the last of some sweeps, and the times of their right results of the operation `op`; a later
    sweep's time replaces an earlier one's. Products whose labels are `left_out` are.
    """
    groups: dict[tuple[Any, ...], dict[tuple[GemmProblem, int], float]] = {}
    facts: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    taken = ""
    for path in paths:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            head, *lines = (json.loads(line) for line in file)
        taken = str(head["environment"]["time_utc"])[:10]
        for line in lines:
            if line.get("us") is None or not line["right"] or is_hiccup(line) or line["size"] in left_out:
                continue
            try:
                trial = Trial(line["kernel"], line["config"]).of_today()
            except UsageError:
                continue
            if find_kernel(trial.kernel).op != op:
                continue
            key, parts = trial.without_parts, trial.config.get(PARTS, 1)
            groups.setdefault(key, {})[find_op(op).problem_from_json(line["problem"]), parts] = line["us"]
            facts[key] = line
    return taken, [Times(_entry(key[0], dict(key[1:]), facts[key], us), us) for key, us in groups.items()]


def benched(path: Path) -> Iterator[Times]:
    """Yield the median times of every rung and configuration of a record of `gemmlab bench` whose result was right."""
    times: dict[tuple[str, str], dict[tuple[GemmProblem, int], float]] = {}
    facts: dict[tuple[str, str], Mapping[str, Any]] = {}
    for result in read_record(path, notice=False).results:
        if result.facts.get("role") != "rung" or not result.samples or result.verified is not True:
            continue
        key = result.contestant.removeprefix("kernel:").partition("[")[0], json.dumps(result.facts["config"])
        problem = OP.problem_from_json(result.problem)
        times.setdefault(key, {})[problem, 1] = statistics.median(sample.time_us for sample in result.samples)
        smem, threads = _launched(key[0], find_kernel(key[0]).configure(result.facts["config"]))
        resources = result.facts["resources"]
        facts[key] = {"registers": resources["registers"], "smem": resources["static_smem_bytes"] + smem,
                      "threads": threads}  # fmt: skip
    for (name, config), us in times.items():
        yield Times(_entry(name, json.loads(config), facts[name, config], us), us)


def _entry(
    name: str, config: Config, facts: Mapping[str, Any], us: Mapping[tuple[GemmProblem, int], float]
) -> Measurement:  # fmt: skip
    kernel = find_kernel(name)
    alone = {**config, PARTS: 1} if PARTS in kernel.params else config
    chosen = {name: value for name, value in kernel.configure(alone).items() if name != PARTS}
    parts = tuple(sorted({count for _, count in us})) if PARTS in kernel.params else ()
    return Measurement(
        kernel=name, precision=kernel.precision, layouts=kernel.layouts, arch=kernel.arch, config=chosen,
        threads=facts["threads"], registers=facts["registers"], smem=facts["smem"], grid=kernel.tiles, parts=parts,
        in_order=kernel.in_order(alone), figures=Figures(0.0, 0.0, 0.0),
        steps=kernel.steps, align=kernel.align,
        require=tuple(one.that.text for one in kernel.restrictions),
    )  # fmt: skip


def _launched(name: str, config: Config) -> tuple[int, int]:
    """Return the bytes of dynamic shared memory and the threads of a block."""
    kernel = find_kernel(name)
    (problem,) = OP.parse_sizes("64")
    scalars = OP.scalars(problem)
    nothing = dict.fromkeys((*kernel.args, *NO_MEMORY), scalars["m"])
    *_, launch = kernel.launches(kernel.instantiate(config, scalars), {**nothing, **scalars})
    return launch.smem_bytes, math.prod(launch.threads)
