"""The request of `gemmlab tune KERNEL`: what it tunes, and its progress."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gemmlab.cli.console import progress_console
from gemmlab.core.data_folder import require_data_dir
from gemmlab.core.errors import UsageError

if TYPE_CHECKING:
    from gemmlab.core.gpu import GpuLimits
    from gemmlab.devices.device import Device
    from gemmlab.ops.op import Op
    from gemmlab.tuning.device_bench import Subject
    from gemmlab.tuning.search import Progress
    from gemmlab.tuning.session import Tuning
    from gemmlab.tuning.space import Space

REDRAW_S = 0.3


@dataclass(frozen=True, slots=True)
class TuneRequest:
    """The command line, its values unparsed."""

    kernel: str
    flags: Mapping[str, Any]
    device: str
    mode: str | None
    sizes: str | None
    budget_s: float
    threads: str | None
    seed: int
    fresh: bool
    counters: bool

    def run(self) -> list[tuple[Tuning, Subject]]:
        """Tune each size by itself, with an equal part of the budget; return outcomes and what they are of.

        Raises `GemmlabError`.
        """
        from gemmlab.devices.select import open_device
        from gemmlab.kernels.by_name import named_kernel, require_device
        from gemmlab.kernels.fitting import with_factors
        from gemmlab.ops.catalog import find_op
        from gemmlab.tuning.device_bench import Subject
        from gemmlab.tuning.session import tune
        from gemmlab.tuning.space import space_of
        from gemmlab.tuning.strategies import Halving

        where = open_device(self.device, self.mode)
        named = named_kernel(self.kernel, self.flags)
        kernel = require_device(named.kernel, where.device_name)
        op = find_op(kernel.op)
        space = space_of(kernel)
        problems = [with_factors(kernel, op, one) for one in op.parse_sizes(self.sizes or _usual_size(where, op))]
        subject = Subject(
            named, op, tuple(problems[:1]), where, self.mode or where.device_name.modes[0], space, self._threads(),
            limits_of(where),
        )  # fmt: skip
        folder = require_data_dir() / "searches"
        found = []
        for problem in problems:
            _require_taker(self.kernel, space, subject, problem)
            with _progress(f"{kernel.id} {problem.label}", predicted=where.family == "emulated") as report:
                outcome = tune(
                    replace(subject, problems=(problem,)), self.budget_s / len(problems), folder,
                    strategy=Halving(self.seed), fresh=self.fresh, report=report,
                )  # fmt: skip
            found.append((self._explained(outcome, where, subject), replace(subject, problems=(problem,))))
        return found

    def _explained(self, outcome: Tuning, where: Device, subject: Any) -> Tuning:
        if not self.counters or where.kernels != "cuda":
            return outcome
        from gemmlab.devices.emulated import EmulatedDevice
        from gemmlab.devices.select import DEFAULT_ARCH
        from gemmlab.tuning.counter_reasons import with_reasons

        arch = where.device_name.which if where.family == "emulated" else ""
        device = EmulatedDevice(arch or DEFAULT_ARCH, check_races=False)
        found = with_reasons(outcome.sensitivity, subject.named.kernel, subject.op, device)
        return replace(outcome, sensitivity=found)

    def _threads(self) -> int:
        if self.threads is None:
            return 1
        if not self.threads.isdecimal() or not int(self.threads):
            raise UsageError(f"--threads {self.threads}: a number of threads")
        return int(self.threads)


def limits_of(device: Device) -> GpuLimits | None:
    """Return the limits of a GPU; `None` for a processor."""
    from gemmlab.analysis.subject import machine
    from gemmlab.dispatch.waves import gpu_of_facts

    if device.family == "cpu":
        return None
    if device.family == "emulated":
        return machine(device.device_name.which or "")[1].limits
    info = device.describe()
    return gpu_of_facts(info.name, info.facts).limits


def _usual_size(where: Device, op: Op) -> str:
    from gemmlab.analysis.model.quoted_prediction import large_size
    from gemmlab.timing.families import family_of

    if where.family == "emulated":
        return large_size(op.name)
    return family_of(where.family, op.name).bench_sizes.rpartition(",")[2]


def _require_taker(name: str, space: Space, subject: Any, problem: Any) -> None:
    """Raise `UsageError` if the kernel takes the problem in no configuration."""
    kernel, scalars = subject.named.kernel, subject.op.scalars(problem)
    if all(kernel.refusal(space.config(place), scalars) for place in range(len(space))):
        raise UsageError(f"{name} does not take {problem.label}: {kernel.refusal(space.config(0), scalars)}")


@contextmanager
def _progress(what: str, *, predicted: bool) -> Iterator[Callable[[Progress], object]]:
    console = progress_console()
    if not console.is_terminal:
        yield lambda _progress: None
        return
    drawn = -math.inf
    with console.status(what) as status:

        def report(progress: Progress) -> None:
            nonlocal drawn
            # Seldom: a thread that draws during a turn would disturb the measurement.
            if time.monotonic() - drawn < REDRAW_S:
                return
            drawn = time.monotonic()
            best = progress.best
            word = "predicted" if predicted else "best"
            time_text = f"{word} {best.median:.4g} us, " if best is not None else ""
            status.update(f"{what}: {time_text}{progress.tried} tried, {progress.left} left, {progress.seconds:.0f} s")

        yield report
