"""Time contestants against each other in new processes with interleaved turns; record every sample.

The processes are pinned to CPUs if these compute and the system can pin. In a round each contestant has at most one
turn (module `turns`) at each problem, in a random order. A turn gives one sample.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from gemmlab.core.clocks import read_clocks, throttled_between
from gemmlab.core.environment import describe_environment
from gemmlab.core.errors import PeerError
from gemmlab.core.records import Method, Record, Result, Sample
from gemmlab.ops.footprint import reference_bytes, require_memory
from gemmlab.ops.op import Expected
from gemmlab.timing.arena import Arena
from gemmlab.timing.baseline import sizes_for_baseline, time_baseline
from gemmlab.timing.bench_plan import Plan, Progress
from gemmlab.timing.coretype import require_core_types, with_best_core_type
from gemmlab.timing.families import family_of
from gemmlab.timing.peers import PROBE, Spec
from gemmlab.timing.turns import Crew, Launcher, start_worker
from gemmlab.timing.verification import judge_outputs

FEWEST_TURNS = 3
"""Least number of turns of a contestant at a problem in each process, even if its calls are long. If a bench has fewer
rounds, there is one turn in each. The end of the bench's budget may leave fewer.
"""


@dataclass
class _Cell:
    """Samples and facts so far of one contestant on one problem with one thread count."""

    samples: list[Sample] = field(default_factory=list)
    facts: Mapping[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    verified: bool | None = None
    error: float | None = None


class _Bench:
    def __init__(
        self, plan: Plan, device: Mapping[str, Any], progress: Callable[[Progress], None], launcher: Launcher
    ) -> None:
        self.plan, self.device, self.progress, self.launcher = plan, device, progress, launcher
        probe = replace(PROBE, device=plan.device, mode=plan.mode)
        self.specs = [*plan.contestants, *([probe] if plan.probe and plan.op.limit else [])]
        self.cells: dict[tuple[int, int, str], _Cell] = {}
        self.notes: list[str] = []
        self.dropouts: set[tuple[str, int]] = set()
        self.reference_us: dict[int, float] = {}
        self.until = inf
        """The end of the budget: a time of `time.monotonic()`, in seconds."""
        self.left_out = 0
        self.done = 0
        pairs = sum(plan.only(spec.name, problem) for spec in plan.contestants for problem in plan.problems)
        self.total = pairs * plan.rounds * plan.processes * len(plan.threads)

    def run(self) -> Record:
        plan = self.plan
        require_core_types(plan.contestants)
        environment, before = describe_environment(), read_clocks()
        smaller = sizes_for_baseline(plan.op, plan.problems, plan.device.family) if plan.baseline else []
        with Arena(plan.op, [*plan.problems, *smaller], seed=plan.seed) as arena:
            for problem in plan.problems if plan.verify else ():
                require_memory(reference_bytes(plan.op, problem), f"verifying size {problem.label}")
            self.until = time.monotonic() + plan.budget_s
            naive = self._baseline(arena, [*plan.problems, *smaller], plan.baseline) if plan.baseline else []
            for process in range(plan.processes):
                for threads in plan.threads:
                    self._process(arena, process, threads)
        after = read_clocks()
        if self.left_out:
            self.notes.append(f"the budget of {plan.budget_s:g} s ended before {self.left_out} of {self.total} turns")
        if not any(cell.samples for cell in self.cells.values()):
            raise PeerError("nothing could be timed: " + "; ".join(self.notes))
        timing = plan.timing
        return Record(
            kind="climb" if plan.kind == "climb" else "bench",
            op=plan.op.name,
            environment={**environment, "clocks": {"before": before, "after": after}},
            device=self.device,
            method=Method(
                rounds=plan.rounds, processes=plan.processes, min_time_us=timing.min_us, warm_up_us=timing.warm_us,
                inner_us=timing.inner_us, raw_limit=timing.raw_limit, interleaved=True, seed=plan.seed,
                mode=plan.mode, notes=family_of(plan.device.family).method[plan.mode],
            ),
            results=(*self._results(), *naive),
            notes=(*plan.notes, *self.notes, *filter(None, [throttled_between(before, after)])),
        )  # fmt: skip

    def _baseline(self, arena: Arena, problems: Sequence[Any], spec: Spec) -> list[Result]:
        self._say(f"{spec.name}: timing")
        with Crew(self.plan.op, problems, arena, 1, self.plan.timing, self.launcher) as crew:
            results, failures = time_baseline(crew, spec, verify=self.plan.verify)
        for failure in failures:
            self._note(f"{failure} (no ratio to it)")
        return results

    def _process(self, arena: Arena, process: int, threads: int) -> None:
        plan = self.plan
        with Crew(plan.op, plan.problems, arena, threads, plan.timing, self.launcher) as crew:
            self._say(f"starting (process {process + 1} of {plan.processes}, {threads} threads)")
            self._start(crew, [spec for spec in self.specs if (spec.name, threads) not in self.dropouts])
            if plan.verify and process == 0:
                for index in range(len(plan.problems)):
                    self._verify(crew, arena, index)
            shuffle = random.Random(f"{plan.seed} {process} {threads}")  # noqa: S311 - an order, not a secret
            for round_ in range(plan.rounds):
                for index in shuffle.sample(range(len(plan.problems)), len(plan.problems)):
                    for spec in shuffle.sample(self.specs, len(self.specs)):
                        self._turn(crew, spec, index, process, round_)
            for (name, index), reason in crew.skipped.items():
                self._cell(threads, index, name, note=reason)
            for name, reason in crew.lost.items():
                # Not started again in later processes: it would reach the timeout again.
                self.dropouts.add((name, threads))
                self._note(f"{reason} ({threads} threads, process {process + 1})")

    def _start(self, crew: Crew, specs: Sequence[Spec]) -> None:
        chosen = []
        for spec in specs:
            try:
                chosen.append(with_best_core_type(spec, crew.threads))
            except PeerError as error:
                crew.lost[spec.name] = str(error)
        crew.join_all(chosen)
        for spec in chosen:
            self._say(f"{spec.name}: preparing, {crew.threads} threads")
            for index, problem in enumerate(self.plan.problems):
                if not crew.alive(spec.name):
                    break
                if not self._wanted(spec, problem):
                    crew.skipped[spec.name, index] = "left out by the plan"
                elif crew.prepare(spec.name, index):
                    self._cell(crew.threads, index, spec.name).facts = crew.facts[spec.name]

    def _wanted(self, spec: Spec, problem: Any) -> bool:
        return spec.kind == PROBE.kind or self.plan.only(spec.name, problem)

    def _verify(self, crew: Crew, arena: Arena, index: int) -> None:
        plan, problem = self.plan, self.plan.problems[index]
        self._say(f"{problem.label}: verifying")
        contents = arena.fill(index)
        expected = dict[str, Mapping[str, Expected]]()
        for precision in dict.fromkeys(spec.precision for spec in plan.contestants):
            started = time.perf_counter()
            expected[precision] = plan.op.reference(problem, contents, precision=precision)
            self.reference_us.setdefault(index, (time.perf_counter() - started) * 1e6)
        for spec in plan.contestants:
            if crew.can(spec.name, index):
                arena.restore(index, contents)
                if crew.run(spec.name, index):
                    found = judge_outputs(arena, index, expected[spec.precision], contents)
                    cell = self._cell(crew.threads, index, spec.name)
                    cell.verified, cell.error = found.right, found.error_ratio
                    cell.notes += found.explanations
        arena.restore(index, contents)

    def _turn(self, crew: Crew, spec: Spec, index: int, process: int, round_: int) -> None:
        problem = self.plan.problems[index]
        before = self._cell(crew.threads, index, spec.name).samples if crew.can(spec.name, index) else []
        last_us = before[-1].time_us if before else 0.0
        over = bool(before) and time.monotonic() > self.until
        self.left_out += int(over and spec.kind != PROBE.kind)
        if crew.can(spec.name, index) and not over and self._takes_turn(round_, last_us):
            turn = crew.turn(spec.name, index, last_us)
            if turn is not None:
                sample = Sample(
                    process, round_, float(turn["time_us"]), turn["calls"], turn["inner"], tuple(turn["raw_us"]),
                    turn.get("clock_mhz"), turn.get("memory_mhz"), tuple(turn.get("throttle", ())),
                )  # fmt: skip
                self._cell(crew.threads, index, spec.name).samples.append(sample)
        if spec.kind != PROBE.kind and self._wanted(spec, problem):
            self.done += 1
            self._say(f"{spec.name} {problem.label}, {crew.threads} threads, process {process + 1}, round {round_ + 1}")

    def _takes_turn(self, round_: int, last_us: float) -> bool:
        """Return whether a contestant whose call took `last_us` microseconds in its latest turn has one in this round.

        It does if that time is unknown (0). Long calls are timed in only some of the rounds, evenly spread.
        """
        rounds, turns = self.plan.rounds, self.plan.rounds
        if last_us * rounds > self.plan.timing.cell_us:
            turns = min(rounds, max(FEWEST_TURNS, int(self.plan.timing.cell_us / last_us)))
        return not last_us or (round_ + 1) * turns // rounds > round_ * turns // rounds

    def _cell(self, threads: int, index: int, name: str, note: str | None = None) -> _Cell:
        cell = self.cells.setdefault((threads, index, name), _Cell())
        if note is not None and note not in cell.notes:
            cell.notes.append(note)
        return cell

    def _results(self) -> list[Result]:
        results = []
        for threads in self.plan.threads:
            for index, problem in enumerate(self.plan.problems):
                for spec in self.specs:
                    cell = self.cells.get((threads, index, spec.name))
                    if cell is None:
                        continue
                    results.append(
                        Result(
                            contestant=spec.name, problem=problem.to_json(), label=problem.label,
                            flops=self.plan.op.flops(problem), bytes=self.plan.op.bytes_moved(problem), threads=threads,
                            facts={"role": spec.role, "precision": spec.precision, **cell.facts},
                            samples=tuple(cell.samples),
                            verified=cell.verified, max_error_ratio=cell.error, notes=tuple(cell.notes),
                            reference_us=self.reference_us.get(index),
                        )
                    )  # fmt: skip
        return results

    def _note(self, text: str) -> None:
        self.notes.append(text)
        self._say(text)

    def _say(self, text: str) -> None:
        self.progress(Progress(self.done, self.total, text))


def run_bench(
    plan: Plan,
    *,
    device: Mapping[str, Any] | None = None,
    progress: Callable[[Progress], None] = lambda _progress: None,
    launcher: Launcher = start_worker,
) -> Record:
    """Verify and time everything in `plan`; return the record, with `device` as the description of the device.

    Results are verified only if `plan.verify`. A contestant that dies, does not answer or does not load is dropped at
    this thread count, with a note in the record. Raises `PeerError` if nothing could be timed, not even the probe,
    `UsageError` for a core type that a library does not accept, `MemoryError` for problems that do not fit. However it
    ends, no process and no shared memory is left.
    """
    return _Bench(plan, device or {}, progress, launcher).run()
