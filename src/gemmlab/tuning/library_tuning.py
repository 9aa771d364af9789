"""Measure on this machine the kernels that `gemmlab.gemm` may choose, and store the fastest ones.

On a GPU the kernels and configurations that the shipped table or its rule ranks first are verified and timed in a few
rounds for each product; the fastest three and the shipped choice are then timed in more rounds. On a CPU `gemmlab.gemm`
has one kernel, whose tile, cache blocks and thread threshold are searched at several products at once; there,
too, the fastest three and the shipped one are timed again, in turns, because the least of many noisy times is too low.
A candidate replaces the shipped choice only if it is clearly faster (`LEAST_GAIN`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gemmlab.core.errors import RecordError, UsageError
from gemmlab.core.words import counted
from gemmlab.devices.device import Device
from gemmlab.dispatch.choice import choose
from gemmlab.dispatch.choice_store import SWITCH, Entry, machine_of_cpu, machine_of_gpu, objection
from gemmlab.dispatch.choice_values import Candidate
from gemmlab.dispatch.measurements import shipped_table, time_key
from gemmlab.dispatch.precision_rule import HIGHEST
from gemmlab.dispatch.waves import Gpu, gpu_of_facts
from gemmlab.kernels.by_name import named_kernel
from gemmlab.kernels.catalog import find_kernel
from gemmlab.kernels.digest import source_digest
from gemmlab.ops.gemm import GemmOp
from gemmlab.ops.gemm_problem import GemmProblem
from gemmlab.timing.configurations import configured
from gemmlab.timing.families import family_of
from gemmlab.timing.peers import Spec, kernel_spec
from gemmlab.timing.prebuild import of_specs, prebuild
from gemmlab.timing.suite.shapes import shipped_suite
from gemmlab.tuning.choice_times import FINAL_ROUNDS, FINALISTS, LEAST_GAIN, Request, median_times, now
from gemmlab.tuning.processor_tuning import processor_entry
from gemmlab.tuning.store_file import add, require_store, stored

CPU_SIZES = "64,100,160,256,512,1024,64x2048x2048,2048x64x2048"
"""Products by which a processor's configuration is chosen: around the thread threshold, square, skinny and deep."""
_CANDIDATES, _ROUNDS = 12, 3


def usual_problems(device: Device) -> list[GemmProblem]:
    """Return the products that are measured on a device if the caller names none."""
    if family_of(device.family).host_threads:
        return list(GemmOp().parse_sizes(CPU_SIZES))
    texts = [shape.text for shape in shipped_suite().shapes if shape.op == "gemm"]
    return list(GemmOp().parse_sizes(",".join(texts)))


def tune_library(request: Request) -> Iterator[Entry]:
    """Find the fastest kernel or configuration of `gemmlab.gemm` here; store each entry immediately, and yield it.

    On a CPU, one search over all products gives one entry. On a GPU, each product has an entry of its own. Products
    that have a valid entry in the store (unless `request.fresh`), or at which the shipped choice has no right time, are
    left out, and no product is begun after the budget. If nothing is `LEAST_GAIN` times as fast as the shipped choice,
    the entry names that.

    Raises `UsageError` for a device whose times are meaningless, and if nothing can be stored; `RecordError` for a
    damaged store; on a CPU also as `processor_entry` does.
    """
    family = request.device.family
    if not family_of(family).timed:
        raise UsageError(f"--library: on {request.device.id} nothing is timed; the library call does not run there")
    # Before anything is measured, not after it.
    require_store()
    for entry in _gpu(request) if family != "cpu" else [processor_entry(request)]:
        add([entry])
        yield entry


def _gpu(request: Request) -> Iterator[Entry]:
    info = request.device.describe()
    where = gpu_of_facts(info.name, info.facts)
    known = {entry.product for entry in stored().values() if entry.machine == where.machine and not objection(entry)}
    started = time.monotonic()
    for problem in request.problems:
        if time.monotonic() - started > request.budget_s:
            return
        if request.fresh or time_key(problem) not in known:
            request.report(f"{problem.label}")
            entry = _entry_for(request, problem, where)
            if entry is not None:
                yield entry


def _entry_for(request: Request, problem: GemmProblem, where: Gpu) -> Entry | None:
    usual = choose(problem, where, shipped_table(), precision=HIGHEST)
    if not usual.considered or not usual.considered[0].blocks:
        return None
    specs = {spec.name: (spec, one) for one in _first(usual.considered) for spec in [_spec(request, one)]}
    shipped = next(iter(specs))
    prebuild(of_specs(GemmOp(), [spec for spec, _ in specs.values()], [problem]), request.device)
    times = median_times(request, [problem], [spec for spec, _ in specs.values()], _ROUNDS)
    final = list(dict.fromkeys([shipped, *sorted(times, key=lambda name: times[name])[:FINALISTS]]))
    times = median_times(request, [problem], [specs[name][0] for name in final], FINAL_ROUNDS)
    if shipped not in times:
        return None
    best = min(times, key=lambda name: times[name])
    if times[shipped] < LEAST_GAIN * times[best]:
        best = shipped
    chosen = specs[best][1]
    return Entry(
        machine=where.machine, op="gemm", product=time_key(problem), precision=HIGHEST, kernel=chosen.kernel,
        config=dict(chosen.config), us=times[best], shipped_us=times[shipped],
        digest=source_digest(find_kernel(chosen.kernel)), taken=now(),
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

    A state has the numbers of entries (`entries`) and of invalid ones among them (`stale`), and the time of the newest
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
