"""A request to tune one kernel, as the command line and a call of Python make it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

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


@dataclass(frozen=True, slots=True)
class TuneRequest:
    """The arguments of a command line or call; kernel, device and sizes are names and text."""

    kernel: str
    flags: Mapping[str, Any]
    device: str
    mode: str | None
    sizes: str | None
    budget_s: float
    threads: int
    seed: int
    fresh: bool
    counters: bool

    def run(self, progress: Callable[[str, int, int], object]) -> list[tuple[Tuning, Subject]]:
        """Tune each size by itself, with an equal part of the budget; return each size's outcome and subject.

        `progress` is called with a text, the number of configurations tried, and the number of tried and remaining
        ones. Raises `GemmlabError`.
        """
        from gemmlab.devices.select import open_device
        from gemmlab.kernels.by_name import named_kernel, require_device
        from gemmlab.kernels.fitting import as_taken
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
        problems = [as_taken(kernel, op, one) for one in op.parse_sizes(self.sizes or _usual_size(where, op))]
        subject = Subject(
            named, op, tuple(problems[:1]), where, self.mode or where.device_name.modes[0], space, self.threads,
            limits_of(where),
        )  # fmt: skip
        folder = require_data_dir() / "searches"
        found = []
        for problem in problems:
            _require_taker(self.kernel, space, subject, problem)
            outcome = tune(
                replace(subject, problems=(problem,)), self.budget_s / len(problems), folder,
                strategy=Halving(self.seed), fresh=self.fresh,
                report=_reporter(progress, f"{kernel.id} {problem.label}", predicted=where.family == "emulated"),
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


def limits_of(device: Device) -> GpuLimits | None:
    """Return the limits on threads, registers and shared memory of a GPU, real or emulated; `None` for a CPU."""
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
    """Raise `UsageError` if no configuration of the kernel takes the problem."""
    kernel, scalars = subject.named.kernel, subject.op.scalars(problem)
    if all(kernel.refusal(space.config(place), scalars) for place in range(len(space))):
        raise UsageError(f"{name} does not take {problem.label}: {kernel.refusal(space.config(0), scalars)}")


def _reporter(
    progress: Callable[[str, int, int], object], what: str, *, predicted: bool
) -> Callable[[Progress], object]:
    word = "predicted" if predicted else "best"

    def report(now: Progress) -> None:
        progress(f"{what}: {now.text(word)}", now.tried, now.tried + now.left)

    return report
