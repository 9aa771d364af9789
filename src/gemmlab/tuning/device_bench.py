"""A bench on a real device. Each configuration is a contestant in a worker process, as in `gemmlab bench`.

Configurations for a GPU share a worker. It is restarted regularly, and after each configuration with a fault. A
configuration that crashes or hangs is recorded as a fault and does not end the search.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Self

from gemmlab.core.errors import DeviceError, GemmlabError
from gemmlab.core.gpu import GpuLimits, occupancy
from gemmlab.core.hardware import usable_cpus
from gemmlab.core.stats import geometric_mean
from gemmlab.devices.device import Device
from gemmlab.kernels.by_name import NamedKernel
from gemmlab.ops.op import Contents, Expected, Op
from gemmlab.timing.arena import Arena
from gemmlab.timing.configurations import configured
from gemmlab.timing.families import family_of
from gemmlab.timing.peers import kernel_spec
from gemmlab.timing.turns import Crew, Launcher, start_worker
from gemmlab.timing.verification import judge_outputs
from gemmlab.tuning.builders import Builders, Key
from gemmlab.tuning.forecast import block
from gemmlab.tuning.outcomes import Build, Turn, Verdict
from gemmlab.tuning.space import Space

TIMEOUT_S = 60.0
MOST_OPEN = 200
"""The most configurations that are open in the workers: each takes memory on the device."""
SEED = 0


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject of a search: a kernel at one problem, or at several, on one device."""

    named: NamedKernel
    op: Op
    problems: tuple[Any, ...]
    """Usually one problem; for several, the geometric mean of the times counts."""
    device: Device
    mode: str
    """State of the caches before a timed call: `"warm"` or `"cold"`."""
    space: Space
    threads: int = 1
    """Number of threads of a CPU kernel. A kernel for a GPU does not use it, but records contain it."""
    limits: GpuLimits | None = None
    """The GPU's limits; `None` for a CPU."""

    @property
    def problem(self) -> Any:
        """The first of the problems; code is compiled for it."""
        return self.problems[0]

    @property
    def label(self) -> str:
        """The labels of the problems, joined by commas."""
        return ", ".join(problem.label for problem in self.problems)


@dataclass
class DeviceBench:
    """An `outcomes.Bench` that times a subject in worker processes. A context manager that ends them on exit."""

    subject: Subject
    launcher: Launcher = start_worker
    _crew: Crew | None = None
    _open: set[str] = field(default_factory=set)
    _keys: dict[int, Key] = field(default_factory=dict)
    _refused: dict[int, str] = field(default_factory=dict)
    """Number of a configuration that the device cannot execute -> the reason."""

    def __post_init__(self) -> None:
        of = self.subject
        self._began = time.perf_counter()
        self._family = family_of(of.device.family, of.op.name)
        self._arena = Arena(of.op, of.problems, seed=SEED)
        self._known: list[tuple[Contents, Mapping[str, Expected]]] | None = None
        self._spec = kernel_spec(of.named, of.device.device_name, of.mode)
        self._builders = Builders(of.named, len(usable_cpus()))
        self._waiting = list[int]()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._builders.__exit__(kind, error, trace)
        self._end_crew()
        self._arena.__exit__(kind, error, trace)

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._began

    @property
    def builders(self) -> int:
        return self._builders.count

    def submit(self, places: Sequence[int]) -> None:
        self._waiting += places
        # On a processor compilers would disturb the measurement, so they start only when a build is awaited.
        if not self._family.host_threads:
            self._begin_builds(self._waiting)

    def soonest(self, places: Sequence[int], until: float) -> int:
        if self._family.host_threads:
            return places[0]
        if refused := self._refused.keys() & set(places):
            return min(refused)
        return places[self._builders.soonest([self._keys[place] for place in places], until - self.seconds)]

    def build(self, place: int, until: float) -> Build | None:
        if place not in self._keys and place not in self._refused:
            # A few at a time, so that measuring begins early.
            later = self._waiting.index(place) + self.builders
            self._begin_builds(self._waiting[:later])
        if place in self._refused:
            return Build(place, self._refused[place])
        if self._family.host_threads and not self._builders.idle(until - self.seconds):
            return None
        code = self._builders.get(self._keys[place], until - self.seconds)
        if code is None:
            return None
        return Build(place, code.fault, code.seconds, facts_of(self.subject, place, code.resources))

    def _begin_builds(self, places: Sequence[int]) -> None:
        of, kernel = self.subject, self.subject.named.kernel
        for place in places:
            instance = kernel.instantiate(of.space.config(place), of.op.scalars(of.problem))
            try:
                self._keys[place] = self._builders.submit(instance, of.device.target(instance))
            except DeviceError as error:
                # Such as vectors that are wider than the processor's.
                self._refused[place] = str(error)
        self._waiting = self._waiting[len(places) :]

    def verify(self, place: int) -> Verdict:
        started = time.perf_counter()
        fault = self._ready(place) or self._run(place)
        if fault:
            # The configuration may have written out of bounds, into operands that others in its process read.
            self._end_crew()
        return Verdict(place, not fault, fault, time.perf_counter() - started)

    def turn(self, place: int) -> Turn:
        started, of = time.perf_counter(), self.subject
        if fault := self._ready(place):
            return Turn(place, fault=fault)
        crew, name = self._crew_now(), self._name(place)
        times = []
        for index in range(len(of.problems)):
            found = crew.turn(name, index)
            if found is None:
                return Turn(place, fault=crew.lost[name], seconds=time.perf_counter() - started)
            times.append(float(found["time_us"]))
        return Turn(place, geometric_mean(times), "", time.perf_counter() - started)

    def _run(self, place: int) -> str:
        """Run configuration number `place` once at each problem, and compare its outputs with the reference.

        Return the first fault in words; empty if there is none.
        """
        of = self.subject
        if self._known is None:
            # Stored for all configurations: inputs and reference take longer than a configuration's own run.
            precision = of.named.kernel.precision
            filled = [(problem, self._arena.fill(index)) for index, problem in enumerate(of.problems)]
            self._known = [(into, of.op.reference(problem, into, precision=precision)) for problem, into in filled]
        crew, name = self._crew_now(), self._name(place)
        for index, (inside, expected) in enumerate(self._known):
            self._arena.restore(index, inside)
            if not crew.run(name, index):
                return crew.lost[name]
            outcome = judge_outputs(self._arena, index, expected, inside)
            if not outcome.right:
                return f"wrong result at {of.problems[index].label}: " + " ".join(outcome.explanations)
        return ""

    def _ready(self, place: int) -> str:
        """Open configuration number `place`, unless it is open: a worker starts it and prepares each problem.

        Return the reason if that is impossible, else `""`.
        """
        name = self._name(place)
        if self._crew is not None and any(each in self._crew.lost for each in self._open):
            self._end_crew()
        if name in self._open:
            return ""
        if len(self._open) >= MOST_OPEN:
            self._end_crew()
        crew = self._crew_now()
        spec = configured(self._spec, self.subject.space.config(place))
        if not crew.join(replace(spec, name=name)):
            return crew.lost[name]
        for index in range(len(self.subject.problems)):
            if not crew.prepare(name, index):
                return crew.lost.get(name) or crew.skipped.get((name, index), "it cannot be prepared")
        self._open.add(name)
        return ""

    def _crew_now(self) -> Crew:
        """Return the current workers, or new ones if there are none."""
        of = self.subject
        if self._crew is None:
            timing = replace(self._family.timing[of.mode], timeout_s=TIMEOUT_S)
            self._crew = Crew(of.op, of.problems, self._arena, of.threads, timing, self.launcher)
        return self._crew

    def _end_crew(self) -> None:
        if self._crew is not None:
            self._crew.__exit__(None, None, None)
        self._crew, self._open = None, set()

    def _name(self, place: int) -> str:
        return f"{self._spec.name}[{self.subject.space.text(place)}]"


def facts_of(of: Subject, place: int, resources: Mapping[str, int]) -> dict[str, float]:
    """Return `Build.facts` of configuration number `place` from its code's `resources`.

    They are registers, shared memory, threads, spills and the blocks that fit on a multiprocessor. There are none on a
    CPU, without resources, and if the configuration cannot be launched.
    """
    if not resources or of.limits is None:
        return {}
    try:
        threads, dynamic = block(of.named.kernel, of.op, of.problem, of.space.config(place))
    except (GemmlabError, IndexError):
        return {}
    registers, smem = resources["registers"], resources["static_smem_bytes"] + dynamic
    return {
        "registers": registers, "smem_bytes": smem, "threads": threads, "spill_bytes": resources.get("spill_stores", 0),
        "blocks_per_sm": occupancy(of.limits, registers, smem, threads).blocks,
    }  # fmt: skip
