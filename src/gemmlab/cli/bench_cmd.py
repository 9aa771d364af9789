"""`gemmlab bench`: time the library call, or kernels, against other libraries."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gemmlab.cli.answer import print_json
from gemmlab.cli.bench_request import BenchRequest
from gemmlab.cli.console import DEVICE_HELP, progress_console
from gemmlab.cli.option_values import parse_config
from gemmlab.cli.own_file import (
    ArgsFlag,
    DefineFlag,
    FactsFlag,
    GridFlag,
    IncludeFlag,
    KernelFlag,
    OptionFlag,
    RequireFlag,
    SmemFlag,
    compile_flags,
    own_flags,
    split_threads,
)
from gemmlab.core.errors import UsageError, WrongResultError
from gemmlab.devices.select import open_device
from gemmlab.dispatch.precision_rule import HIGHEST, REQUESTS

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from gemmlab.core.records import Record
    from gemmlab.devices.device import Device
    from gemmlab.results.summary import Summary, Verdict
    from gemmlab.timing.bench import Progress

REDRAW_S = 0.3


def bench(
    kernels: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KERNEL]...",
            help="Kernels by id, or .cu files. Default: gemmlab.gemm or gemmlab.sum, else the ladder.",
        ),
    ] = None,
    op: Annotated[str | None, typer.Option(help="Operation. Default: that of the kernels named, else gemm.")] = None,
    sizes: Annotated[
        str | None,
        typer.Option(
            help="256, 256,512, 256:4096:128, MxNxK, MxNxK:nt:lda+4, batches B*MxNxK:b0. Default: a few that suit."
        ),
    ] = None,
    suite: Annotated[bool, typer.Option(help="The frozen suite of shapes; its batches with --op batch.")] = False,
    family: Annotated[
        str | None, typer.Option(metavar="NAME", help="With --suite: one family of shapes, as squares or deep.")
    ] = None,
    config: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE,...", help="The kernel in this configuration; repeatable, each is timed."),
    ] = None,
    configs: Annotated[
        str | None, typer.Option(metavar="all|N", help="Every legal configuration of the tuning space, or N of them.")
    ] = None,
    peers: Annotated[
        str,
        typer.Option(
            help="On a CPU openblas[:CORETYPE|:best], numpy[...], mkl, onednn, NAME=/path/lib.so; "
            "on a GPU cublas, torch, cupy, cublaslt (only quoted), for sums cub; installed; none."
        ),
    ] = "installed",
    threads: Annotated[
        str | None, typer.Option(help="Thread counts, as 1,2 (default: 1); for a .cu file its block.")
    ] = None,
    rounds: Annotated[int, typer.Option(help="Interleaved rounds in each process.")] = 15,
    processes: Annotated[int, typer.Option(help="Fresh processes of every contestant.")] = 3,
    seed: Annotated[int, typer.Option(help="Seed of the data and of the order of turns.")] = 0,
    timeout: Annotated[
        float, typer.Option(min=1.0, help="Seconds after which a hanging contestant is dropped.")
    ] = 300.0,
    verify: Annotated[bool, typer.Option(help="Compare every result with the float64 reference first.")] = True,
    device: Annotated[str, typer.Option(help=DEVICE_HELP)] = "cpu",
    mode: Annotated[
        str | None,
        typer.Option(
            help="Operands before each call: cold, in no cache, or warm. Default: warm on a CPU, cold on a GPU."
        ),
    ] = None,
    alpha: Annotated[float | None, typer.Option(help="Factor of the product. Default: 1.")] = None,
    beta: Annotated[
        float | None,
        typer.Option(help="Factor of C. Default: 0; 1 if a kernel always reads C."),
    ] = None,
    precision: Annotated[
        str,
        typer.Option(metavar="|".join(REQUESTS), help="The precision asked of the library call."),
    ] = HIGHEST,
    naive: Annotated[bool, typer.Option(help="Compare with the naive kernel too.")] = True,
    function: KernelFlag = None,
    grid: GridFlag = None,
    args: ArgsFlag = None,
    smem_bytes: SmemFlag = None,
    facts: FactsFlag = None,
    include: IncludeFlag = None,
    define: DefineFlag = None,
    option: OptionFlag = None,
    require: RequireFlag = None,
    target: Annotated[
        float | None, typer.Option(help="Exit 1 unless the geometric mean against the fastest peer reaches this.")
    ] = None,
    floor: Annotated[
        float | None, typer.Option(help="Exit 1 if a size is surely (95 %) below this ratio to the fastest peer.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print record and summary as JSON, nothing else.")] = False,
    save: Annotated[Path | None, typer.Option(help="Write the record to this file.")] = None,
) -> None:
    """Time the library call or kernels against peers, in turns, every sample kept.

    On an emulated device nothing is timed: kernels are counted.
    """
    from gemmlab.cli.bench_tables import print_tables
    from gemmlab.core.records import save_record, to_json
    from gemmlab.kernels.by_name import named_kernels
    from gemmlab.results.summary import judge, summarise
    from gemmlab.timing.bench import run_bench
    from gemmlab.timing.configurations import config_tables
    from gemmlab.timing.families import family_of, operation_of
    from gemmlab.timing.prebuild import of_library, of_plan, prebuild

    where = open_device(device, mode)
    bounded = target is not None or floor is not None
    if save is not None and not save.resolve().parent.is_dir():
        raise UsageError(f"--save {save}: no folder {save.parent}")
    names = kernels or []
    flags = own_flags(
        names, kernel=function, grid=grid, args=args, smem_bytes=smem_bytes, require=require,
        options=compile_flags(include, define, option), facts=facts,
    )  # fmt: skip
    workers, flags = split_threads(names, threads, flags)
    found = named_kernels(names, flags)
    op = op or operation_of(names, found)
    timed = family_of(where.family).timed
    if not timed:
        if bounded:
            raise UsageError(f"--target, --floor: on {where.id} nothing is timed")
        if config or configs:
            raise UsageError(f"--config, --configs: on {where.id} nothing is timed")
    request = BenchRequest(
        device=where, kernels=[found[name] for name in names], op=op, mode=mode, sizes=sizes, peers=peers,
        threads=workers or "1", rounds=rounds, processes=processes, seed=seed, timeout_s=timeout, verify=verify,
        naive=naive, configs=[parse_config(text.split(",")) for text in config or []], some_configs=configs,
        suite=suite, shapes_of=family, precision=precision,
        factors={name: value for name, value in (("alpha", alpha), ("beta", beta)) if value is not None},
    )  # fmt: skip
    if not timed:
        _count(request, save, as_json=as_json)
        return
    plan = request.plan()
    with _display() as bar:
        code = (*of_plan(plan), *of_library(plan, where))
        prebuild(code, where, lambda text: bar.update(bar.task_ids[0], description=text) if bar else None)
        record = run_bench(plan, device=_describe(where), progress=_reporter(bar))
    if save is not None:
        save_record(record, save)
    summary = summarise(record)
    verdict = judge(summary, target or 0.0, floor or 0.0) if bounded else None
    if as_json:
        extra = {} if verdict is None else {"verdict": {"passed": verdict.passed, "failures": list(verdict.failures)}}
        tables = {"configurations": [asdict(table) for table in config_tables(record)]} if config or configs else {}
        print_json({"record": to_json(record), "summary": summary.to_json(), **tables, **extra})
    else:
        print_tables(record, summary, verdict)
    _fail_if_wrong(record, summary, verdict)


def _count(request: BenchRequest, save: Path | None, *, as_json: bool) -> None:
    from gemmlab.cli.counts import count, print_counts, wrong_counts
    from gemmlab.core.records import save_record, to_json
    from gemmlab.results.count_rows import count_rows

    record = count(request.count())
    if save is not None:
        save_record(record, save)
    rows = count_rows(record)
    if all(row.instructions is None for row in rows):
        raise UsageError(
            "nothing could be run: " + "; ".join(f"{r.name} at {r.size}: {' '.join(r.notes)}" for r in rows)
        )
    if as_json:
        print_json({"record": to_json(record), "rows": [asdict(row) for row in rows]})
    else:
        print_counts(record, rows)
    if wrong := wrong_counts(rows):
        raise WrongResultError("\n".join(wrong))


def _describe(device: Device) -> dict[str, Any]:
    info = device.describe()
    return {"id": info.id, "name": info.name, "facts": dict(info.facts)}


def _display() -> AbstractContextManager[Bar | None]:
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = progress_console()
    if not console.is_terminal:
        return nullcontext()
    return Progress(
        BarColumn(), TimeRemainingColumn(), TextColumn("{task.description}", markup=False), console=console,
        transient=True, auto_refresh=False,
    )  # fmt: skip


def _reporter(bar: Bar | None) -> Callable[[Progress], None]:
    if bar is None:
        return lambda _progress: None
    task = bar.add_task("starting")
    drawn = -math.inf

    def report(progress: Progress) -> None:
        # Drawn between turns and seldom: a thread that draws during a turn would disturb the measurement.
        nonlocal drawn
        now = time.monotonic()
        if now - drawn >= REDRAW_S:
            drawn = now
            bar.update(task, completed=progress.done, total=progress.total, description=progress.text[:100])
            bar.refresh()

    return report


def _fail_if_wrong(record: Record, summary: Summary, verdict: Verdict | None) -> None:
    from gemmlab.cli.bench_tables import all_notes
    from gemmlab.results.summary import OURS

    wrong = [f"{row.contestant} at {row.label}" for row in summary.rows if row.role in OURS and row.verified is False]
    if wrong:
        raise WrongResultError(f"wrong result: {', '.join(wrong)}")
    if not any(row.role in OURS for row in summary.rows):
        raise WrongResultError(f"only peers could be timed: {'; '.join(all_notes(record))}")
    if verdict is not None and not verdict.passed:
        raise WrongResultError(f"{len(verdict.failures)} targets missed: {verdict.failures[0]}")


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("bench")(bench)
