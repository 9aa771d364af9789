"""Search the configuration of the CPU kernel of `gemmlab.gemm` on this processor, at several products at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

from gemmlab.core.errors import UsageError
from gemmlab.core.hardware import physical_cores
from gemmlab.core.words import counted
from gemmlab.dispatch.choice_store import EVERY, Entry, machine_of_cpu
from gemmlab.dispatch.override import USUAL
from gemmlab.dispatch.precision_rule import HIGHEST
from gemmlab.kernels.by_name import named_kernel
from gemmlab.ops.gemm import GemmOp
from gemmlab.timing.configurations import configured
from gemmlab.timing.peers import kernel_spec
from gemmlab.tuning.choice_times import FINAL_ROUNDS, FINALISTS, LEAST_GAIN, Request, median_times, now
from gemmlab.tuning.device_bench import Subject
from gemmlab.tuning.search import Progress
from gemmlab.tuning.session import tune
from gemmlab.tuning.space import space_of

_COMPARED, _COMPARED_S = 0.15, 10.0
"""The final comparison has the fraction `_COMPARED` of the budget.

It has at least `_COMPARED_S` seconds, or a quarter of the budget if that is less.
"""


def processor_entry(request: Request) -> Entry:
    """Return the entry of the fastest configuration, or of the shipped one if none is `LEAST_GAIN` times as fast.

    Raises `UsageError` if the search, or the comparison after it, has no time of the shipped configuration; otherwise
    as `session.tune` does.
    """
    named = named_kernel(USUAL)
    subject = Subject(
        named, GemmOp(), tuple(request.problems), request.device, request.mode, space_of(named.kernel),
        physical_cores(),
    )  # fmt: skip

    def report(progress: Progress) -> None:
        request.report(progress.text("best"))

    searched_s = request.budget_s - max(_COMPARED * request.budget_s, min(_COMPARED_S, request.budget_s / 4))
    found = tune(subject, searched_s, request.folder, fresh=request.fresh, report=report)
    if found.default is None:
        raise UsageError(f"{USUAL}: the shipped configuration has no time; give a longer --budget")
    usual, *others = (found.default.config, *(row.config for row in found.rows[:FINALISTS]))
    finalists = [dict(usual), *(dict(config) for config in others if config != usual)]
    request.report(f"{counted(len(finalists), 'configuration')} timed again, in turns")
    times = _again(request, finalists, max(0.0, request.budget_s - found.seconds))
    shipped_us, best, us = times[0], finalists[0], times[0]
    for config, taken in zip(finalists[1:], times[1:], strict=True):
        if taken < us and taken * LEAST_GAIN <= shipped_us:
            best, us = config, taken
    return Entry(
        machine=machine_of_cpu(), op="gemm", product=EVERY, precision=HIGHEST, kernel=USUAL, config=best, us=us,
        shipped_us=shipped_us, digest=found.digest, taken=now(),
    )  # fmt: skip


def _again(request: Request, configs: Sequence[Mapping[str, int]], budget_s: float) -> list[float]:
    """Return the geometric mean of each configuration's times at all problems, in microseconds: infinite if one fails.

    Raises `UsageError` if the first one, the shipped one, has no time.
    """
    plain = kernel_spec(named_kernel(USUAL), request.device.device_name, request.mode)
    specs = [configured(plain, config) for config in configs]
    times = median_times(request, request.problems, specs, FINAL_ROUNDS, physical_cores(), budget_s)
    if specs[0].name not in times:
        raise UsageError(f"{USUAL}: the shipped configuration could not be timed again")
    return [times.get(spec.name, inf) for spec in specs]
