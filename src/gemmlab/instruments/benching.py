"""`gemmlab.bench`: time gemmlab's own call or kernels against other libraries; on an emulated device count kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from math import inf
from typing import Any, Literal

from gemmlab.core.errors import UsageError
from gemmlab.core.records import Record
from gemmlab.dispatch.precision_rule import HIGHEST
from gemmlab.instruments.bench_request import BenchRequest
from gemmlab.instruments.bench_result import BenchResult
from gemmlab.instruments.call_arguments import (
    Facts,
    KernelName,
    OpName,
    Sizes,
    kernel_names,
    operation_argument,
    size_text,
    stated_facts,
)
from gemmlab.instruments.defaults import open_for
from gemmlab.kernels.by_name import named_kernels
from gemmlab.observe.counting import count_kernels
from gemmlab.results.count_rows import count_rows
from gemmlab.results.summary import judge, summarise
from gemmlab.timing import bench as timing
from gemmlab.timing.configurations import config_tables
from gemmlab.timing.families import family_of, operation_of
from gemmlab.timing.prebuild import of_library, of_plan, prebuild

Progress = Callable[[str, int, int], None]
"""A function that is called with (step just done as text, turns done, all turns); a number is 0 if unknown."""


def bench(
    *kernels: KernelName,
    op: OpName | None = None,
    sizes: Sizes | None = None,
    device: str | None = None,
    mode: str | None = None,
    suite: bool | str = False,
    peers: str | Sequence[str] = "installed",
    threads: int | Sequence[int] = 1,
    configs: Sequence[Mapping[str, int]] | int | Literal["all"] = (),
    facts: Facts | None = None,
    alpha: float | None = None,
    beta: float | None = None,
    precision: str = HIGHEST,
    reproducible: bool = False,
    packed: bool = False,
    rounds: int = 15,
    processes: int = 3,
    seed: int = 0,
    timeout_s: float = 300.0,
    budget_s: float = inf,
    verify: bool = True,
    naive: bool = True,
    target: float | None = None,
    floor: float | None = None,
    progress: Progress | None = None,
) -> BenchResult:
    """Time the library call or kernels against other libraries, in turns, and record every sample.

    `kernels` are ids, paths of `.cu` files or CUDA C++ as text; without any, `gemmlab.gemm` or `gemmlab.sum` is timed,
    or the ladder of `op` if it has no library call. `op` may also be a Python file or an `Operation`. `sizes` are 512,
    (M, N, K), a list of such, or the text of `--sizes`; `facts` about a `.cu` file are as for `check`. `suite` replaces
    sizes: `True` for the frozen suite of shapes, or the name of a family of it (`"squares"`). `configs` says which
    configurations of a single kernel to time: a list of them, `"all"` of its tuning space, or a number of them; by
    default its own one.

    `device` is `"cpu"`, `"cuda[:N]"`, or `"emulated[:sm_XX]"`, on which kernels are counted and nothing is timed; by
    default the CPU, and for GPU kernels a GPU, else the emulator. `mode` is the state of the caches before a call,
    `"warm"` or `"cold"`. `peers` are names of libraries, `"installed"` or `"none"`; `threads` one number or several.
    `alpha` and `beta` are the factors of the product, `precision` that of the library call, or several, separated by
    commas. With `reproducible` the library call is also timed with `reproducible=True`, with `packed` (on a CPU) with a
    packed b.

    Contestants are processes, started `processes` times, that take `rounds` turns each. One that does not answer for
    `timeout_s` seconds is left out. After `budget_s` seconds of timing no contestant is timed a second time at a size.
    `seed` determines the data and the order of turns. With `verify` every result is compared with the float64 reference
    first; with `naive` the lowest rung is timed, too. `target` and `floor` request a verdict on the ratios of speeds to
    the fastest peer: by their 95 % intervals, the geometric mean must not be below `target`, and none below `floor`.
    `progress(text, done, total)` is called between turns, and while code is compiled or kernels are counted.

    Raises `ArgumentTypeError`, `UsageError` (an unknown kernel, size or option), `DeviceError`, `PeerError` for a peer
    that is not installed, and `MemoryError`. A wrong result raises nothing: it is in `wrong` of the result.
    """
    names = kernel_names(kernels)
    named, some = ((), str(configs)) if isinstance(configs, int | str) else (configs, None)
    counts = [threads] if isinstance(threads, int) else threads
    return run_request(
        names, op=op, sizes=size_text(sizes), device=device, mode=mode,
        peers=peers if isinstance(peers, str) else ",".join(peers), threads=",".join(map(str, counts)), rounds=rounds,
        processes=processes, seed=seed, timeout_s=timeout_s, budget_s=budget_s, verify=verify, naive=naive,
        configs=named, some_configs=some,
        suite=bool(suite), shapes_of=suite if isinstance(suite, str) else None,
        precision=precision, reproducible=reproducible, packed=packed, alpha=alpha, beta=beta,
        facts=stated_facts(facts, names),
        target=target, floor=floor,
        progress=progress,
    )  # fmt: skip


def run_request(
    names: Sequence[str], *, op: OpName | None, device: str | None, alpha: float | None, beta: float | None,
    facts: Mapping[str, Any], target: float | None, floor: float | None, progress: Progress | None, **request: Any,
) -> BenchResult:  # fmt: skip
    """Time or count kernels; arguments are as on the command line. Raises as `bench` does.

    Further arguments, `request`, are fields of `BenchRequest`.
    """
    report = progress or (lambda _text, _done, _total: None)
    of, facts = operation_argument(op, names, facts)
    found = named_kernels(names, facts)
    where = open_for(device, found.values(), request["mode"])
    of = operation_of(names, found, of)
    factors = {name: value for name, value in (("alpha", alpha), ("beta", beta)) if value is not None}
    what = BenchRequest(device=where, kernels=[found[name] for name in names], op=of, factors=factors, **request)
    if family_of(where.family).timed:
        return _timed(what, target, floor, report)
    if target is not None or floor is not None:
        raise UsageError(f"--target, --floor: on {where.id} nothing is timed")
    if what.configs or what.some_configs is not None:
        raise UsageError(f"--config, --configs: on {where.id} nothing is timed")
    if what.packed or what.reproducible:
        raise UsageError(f"--packed, --reproducible: on {where.id} nothing is timed")
    return _counted(what, report)


def _timed(what: BenchRequest, target: float | None, floor: float | None, report: Progress) -> BenchResult:
    plan, where = what.plan(), what.device
    prebuild((*of_plan(plan), *of_library(plan, where)), where, lambda text: report(text, 0, 0))
    record: Record = timing.run_bench(
        plan, device=asdict(where.describe()), progress=lambda step: report(step.text, step.done, step.total)
    )
    summary = summarise(record)
    verdict = None if target is None and floor is None else judge(summary, target or 0.0, floor or 0.0)
    several = what.configs or what.some_configs is not None
    tables = tuple(config_tables(record)) if several else ()
    return BenchResult(record, summary, verdict=verdict, configurations=tables)


def _counted(what: BenchRequest, report: Progress) -> BenchResult:
    record = count_kernels(what.count(), report)
    rows = count_rows(record)
    if all(row.instructions is None for row in rows):
        why = (f"{row.name} at {row.size}: {' '.join(row.notes)}" for row in rows)
        raise UsageError(f"nothing could be run: {'; '.join(why)}")
    return BenchResult(record, counts=tuple(rows))
