"""A bench without a GPU: results are checked on the emulator, and times are predicted (docs/model.md), not measured."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gemmlab.analysis.model.kernel_study import loads_of, study
from gemmlab.analysis.model.predict import Model
from gemmlab.core.errors import GemmlabError
from gemmlab.core.gpu import GpuModel
from gemmlab.kernels.fitting import fitted
from gemmlab.timing.families import family_of
from gemmlab.tuning.builders import Builders, Key
from gemmlab.tuning.device_bench import Subject, facts_of
from gemmlab.tuning.outcomes import Build, Turn, Verdict
from gemmlab.verify.check import check_kernel
from gemmlab.verify.check_report import CheckReport

SIZES = {"gemm": "70x90x50", "batch": "2*40x50x30", "sums": "9x200x7", "reduce": "5001"}
"""Operation -> size of the problem that a configuration must compute correctly on the emulator.

Sizes that a kernel does not take are changed to others that it takes.
"""


class EmulatedBench:
    """The bench of a subject on an emulated device, as `outcomes.Bench`, with times predicted for a GPU model."""

    def __init__(self, subject: Subject, gpu: GpuModel, builders: Builders) -> None:
        self._subject, self._gpu, self._builders = subject, gpu, builders
        self._began = time.perf_counter()
        self._keys: dict[int, Key] = {}
        self._predicted: dict[int, Turn] = {}
        self._arch = subject.device.device_name.which or gpu.limits.arch

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._began

    @property
    def builders(self) -> int:
        return self._builders.count

    def submit(self, places: Sequence[int]) -> None:
        of, kernel = self._subject, self._subject.named.kernel
        for place in places:
            instance = kernel.instantiate(of.space.config(place), of.op.scalars(of.problem))
            self._keys[place] = self._builders.submit(instance, of.device.target(instance))

    def soonest(self, places: Sequence[int], until: float) -> int:
        keys = [self._keys[place] for place in places]
        return places[self._builders.soonest(keys, until - self.seconds)]

    def build(self, place: int, until: float) -> Build | None:
        code = self._builders.get(self._keys[place], until - self.seconds)
        return (
            None
            if code is None
            else Build(place, code.fault, code.seconds, facts_of(self._subject, place, code.resources))
        )

    def verify(self, place: int) -> Verdict:
        of, started = self._subject, time.perf_counter()
        kernel, config = of.named.kernel, of.space.config(place)
        try:
            cases: list[Any] = fitted(kernel, of.op, config, of.op.parse_sizes(_size(of.op.name)))
            report = check_kernel(kernel, of.device, of.op, config=config, cases=cases)
            fault = "" if report.passed else _fault(report)
        except GemmlabError as error:
            fault = str(error)
        return Verdict(place, not fault, fault, time.perf_counter() - started)

    def turn(self, place: int) -> Turn:
        """Return a turn with the predicted time or a fault. Further turns of a configuration repeat the first one."""
        if place not in self._predicted:
            self._predicted[place] = self._predict(place)
            return self._predicted[place]
        return replace(self._predicted[place], seconds=0.0)

    def _predict(self, place: int) -> Turn:
        of, started = self._subject, time.perf_counter()
        kernel, config = of.named.kernel, of.space.config(place)
        try:
            model = Model(study(kernel, self._arch, config, self._gpu.limits), self._gpu)
            found = model.predict(loads_of(kernel, config, of.problem), of.op.bytes_moved(of.problem))
        except GemmlabError as error:
            return Turn(place, fault=f"no time is predicted: {error}", seconds=time.perf_counter() - started)
        return Turn(place, found.time_us, "", time.perf_counter() - started)


def _fault(report: CheckReport) -> str:
    """Return the first mismatch, or in a sentence the other fault of a check that failed, such as a deadlock."""
    for failure in report.failures:
        if failure.mismatches and not failure.hazards:
            return f"wrong result at {failure.problem}: {failure.mismatches[0].brief()}"
    return str(report.verdict)


def _size(op: str) -> str:
    """Return the sizes to check for an operation; for one that `SIZES` lacks the emulator's default."""
    return SIZES.get(op) or family_of("emulated", op).bench_sizes
