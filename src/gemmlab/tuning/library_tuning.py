"""Measure on this machine the kernels that a library call may choose, and store the fastest ones.

On a GPU the kernels and configurations that the shipped table or its rule ranks first are verified and timed in a few
rounds for each product; the fastest three and the shipped choice are then timed in more rounds. On a processor the
library has one kernel, whose tile, cache blocks and thread threshold are searched at several products at once. A
candidate replaces the shipped choice only if it is clearly faster (`LEAST_GAIN`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gemmlab.core.errors import GemmlabError, RecordError, UsageError
from gemmlab.core.hardware import physical_cores
from gemmlab.core.stats import spread
from gemmlab.core.words import counted
from gemmlab.devices.device import Device
from gemmlab.dispatch.choice import choose
from gemmlab.dispatch.choice_store import EVERY, SWITCH, Entry, machine_of_cpu, machine_of_gpu, objection
from gemmlab.dispatch.choice_values import Candidate
from gemmlab.dispatch.measurements import shipped_table, time_key
from gemmlab.dispatch.override import USUAL
from gemmlab.dispatch.precision_rule import HIGHEST
from gemmlab.dispatch.waves import Gpu, gpu_of_facts
from gemmlab.kernels.by_name import named_kernel
from gemmlab.kernels.catalog import find_kernel
from gemmlab.kernels.digest import source_digest
from gemmlab.ops.gemm import GemmOp
from gemmlab.ops.gemm_problem import GemmProblem
from gemmlab.timing.bench import run_bench
from gemmlab.timing.bench_plan import Plan
from gemmlab.timing.configurations import configured
from gemmlab.timing.families import family_of
from gemmlab.timing.peers import Spec, kernel_spec
from gemmlab.timing.prebuild import of_specs, prebuild
from gemmlab.timing.suite.shapes import shipped_suite
from gemmlab.tuning.device_bench import Subject
from gemmlab.tuning.search import Progress
from gemmlab.tuning.session import tune
from gemmlab.tuning.space import space_of
from gemmlab.tuning.store_file import add, require_store, stored

CPU_SIZES = "64,100,160,256,512,1024,64x2048x2048,2048x64x2048"
"""Products by which a processor's configuration is chosen: around the thread threshold, square, skinny and deep."""
LEAST_GAIN = 1.01
"""The least ratio of the shipped choice's time to the time of a choice that is stored in its place."""
_CANDIDATES, _FINALISTS = 12, 3
_ROUNDS, _FINAL_ROUNDS = 3, 9
Report = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Request:
    """The products to measure, and the time budget."""

    device: Device
    mode: str
    budget_s: float
    problems: Sequence[GemmProblem]
    folder: Path
    """The folder of the searches' journals."""
    report: Report = field(default=lambda _text: None)
    """Function that is called with a line of text on the progress."""


def usual_problems(device: Device) -> list[GemmProblem]:
    """Return the products that are measured on a device if the caller names none."""
    if family_of(device.family).host_threads:
        return list(GemmOp().parse_sizes(CPU_SIZES))
    texts = [shape.text for shape in shipped_suite().shapes if shape.op == "gemm"]
    return list(GemmOp().parse_sizes(",".join(texts)))


def tune_library(request: Request) -> Iterator[Entry]:
    """Find the fastest kernel or configuration of the library call here; store each entry immediately, and yield it.

    On a CPU, one search over all products gives one entry. On a GPU, each product has an entry of its own. Products
    that have a valid entry in the store, or of which no right time was measured, are left out, and no product is begun
    after the budget. If nothing is `LEAST_GAIN` times as fast as the shipped choice, the entry names that.

    Raises `UsageError` for a device whose times are meaningless, if nothing can be stored, and if the search on a CPU
    ended before it had timed the shipped configuration; `RecordError` for a damaged store.
    """
    family = request.device.family
    if not family_of(family).timed:
        raise UsageError(f"--library: on {request.device.id} nothing is timed; the library call does not run there")
    # Before anything is measured, not after it.
    require_store()
    yield from _processor(request) if family == "cpu" else _gpu(request)


def _gpu(request: Request) -> Iterator[Entry]:
    info = request.device.describe()
    where = gpu_of_facts(info.name, info.facts)
    known = {entry.product for entry in stored().values() if entry.machine == where.machine and not objection(entry)}
    started = time.monotonic()
    for problem in request.problems:
        if time.monotonic() - started > request.budget_s:
            return
        if time_key(problem) not in known:
            request.report(f"{problem.label}")
            entry = _entry_for(request, problem, where)
            if entry is not None:
                add([entry])
                yield entry


def _entry_for(request: Request, problem: GemmProblem, where: Gpu) -> Entry | None:
    usual = choose(problem, where, shipped_table(), precision=HIGHEST)
    if not usual.considered or not usual.considered[0].blocks:
        return None
    specs = {spec.name: (spec, one) for one in _first(usual.considered) for spec in [_spec(request, one)]}
    shipped = next(iter(specs))
    prebuild(of_specs(GemmOp(), [spec for spec, _ in specs.values()], [problem]), request.device)
    times = _times(request, problem, [spec for spec, _ in specs.values()], _ROUNDS)
    final = list(dict.fromkeys([shipped, *sorted(times, key=lambda name: times[name])[:_FINALISTS]]))
    times = _times(request, problem, [specs[name][0] for name in final], _FINAL_ROUNDS)
    if shipped not in times:
        return None
    best = min(times, key=lambda name: times[name])
    if times[shipped] < LEAST_GAIN * times[best]:
        best = shipped
    chosen = specs[best][1]
    return Entry(
        machine=where.machine, op="gemm", product=time_key(problem), precision=HIGHEST, kernel=chosen.kernel,
        config=dict(chosen.config), us=times[best], shipped_us=times[shipped],
        digest=source_digest(find_kernel(chosen.kernel)), taken=_now(),
    )  # fmt: skip


def _first(considered: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates to time: the shipped choice, the best of each kernel, and further ones in the shipped
    order.

    There are at most `_CANDIDATES`, and none twice.
    """
    each = {one.kernel: one for one in reversed(considered)}
    first = [considered[0], *(one for one in considered if each[one.kernel] is one), *considered]
    return list({(one.kernel, *sorted(one.config.items())): one for one in first}.values())[:_CANDIDATES]


def _spec(request: Request, one: Candidate) -> Spec:
    plain = kernel_spec(named_kernel(one.kernel), request.device.device_name, request.mode)
    return configured(plain, one.config)


def _times(request: Request, problem: GemmProblem, specs: Sequence[Spec], rounds: int) -> dict[str, float]:
    """Return contestant -> median time in microseconds, for those with right results; empty if the bench fails."""
    timing = family_of(request.device.family).timing[request.mode]
    plan = Plan(
        op=GemmOp(), problems=[problem], contestants=specs, rounds=rounds, processes=1, timing=timing, probe=False,
        device=request.device.device_name, mode=request.mode,
    )  # fmt: skip
    try:
        record = run_bench(plan)
    except GemmlabError as error:
        request.report(f"{problem.label}: {error}")
        return {}
    return {
        result.contestant: spread([sample.time_us for sample in result.samples]).median
        for result in record.results
        if result.verified and result.samples and result.contestant != "probe"
    }


def _processor(request: Request) -> Iterator[Entry]:
    named = named_kernel(USUAL)
    subject = Subject(
        named, GemmOp(), tuple(request.problems), request.device, request.mode, space_of(named.kernel),
        physical_cores(),
    )  # fmt: skip

    def report(progress: Progress) -> None:
        request.report(progress.text("best"))

    found = tune(subject, request.budget_s, request.folder, report=report)
    if found.default is None:
        raise UsageError(f"{USUAL}: the shipped configuration has no time; give a longer --budget")
    best = found.best if found.default.us >= LEAST_GAIN * found.best.us else found.default
    entry = Entry(
        machine=machine_of_cpu(), op="gemm", product=EVERY, precision=HIGHEST, kernel=USUAL, config=dict(best.config),
        us=best.us, shipped_us=found.default.us, digest=found.digest, taken=_now(),
    )  # fmt: skip
    add([entry])
    yield entry


def machine_of(device: Device) -> str:
    """Return the name by which choices for a device are stored. Raises `UsageError` for an emulated one."""
    if device.family == "cpu":
        return machine_of_cpu()
    if device.family == "emulated":
        raise UsageError(f"{device.id} is no machine: it cannot be measured")
    info = device.describe()
    return gpu_of_facts(info.name, info.facts).machine


def states(gpus: Mapping[str, Any]) -> dict[str, Any]:
    """Return the name of this processor and of each GPU -> the state of its entries in the store.

    A state has the numbers of entries (`entries`) and of invalid ones among them (`stale`), and the time of the last
    (`taken`, `""` without one). `gpus` is as `timing.inventory.gpus` returns it. If the store cannot be read, the
    result has only an `error`.
    """
    driver = str(gpus.get("driver_cuda", ""))
    machines = [machine_of_cpu(), *(machine_of_gpu(str(one["name"]), driver) for one in gpus["devices"])]
    try:
        entries = list(stored().values())
    except RecordError as error:
        return {"error": str(error)}
    found = {}
    for machine in dict.fromkeys(machines):
        mine = [entry for entry in entries if entry.machine == machine]
        stale = sum(1 for entry in mine if objection(entry))
        found[machine] = {
            "entries": len(mine), "stale": stale, "taken": max((one.taken for one in mine), default="")
        }  # fmt: skip
    return found


def state_text(states: Mapping[str, Any]) -> str:
    """Return the result of the function `states` in words."""
    if "error" in states:
        return str(states["error"])
    words = []
    for machine, one in states.items():
        if not one["entries"]:
            words.append(f"{machine}: not tuned (`gemmlab tune --library`)")
            continue
        stale = f", {one['stale']} of them stale: measure again" if one["stale"] else ""
        words.append(f"{machine}: {counted(one['entries'], 'choice')} of {one['taken'][:10]}{stale}")
    off = f"; {SWITCH}=0: the shipped choices are used" if os.environ.get(SWITCH) == "0" else ""
    return "; ".join(words) + off


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
