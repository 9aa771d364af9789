"""`gemmlab bench`: time gemmlab's own call (`gemmlab.gemm`, `gemmlab.sum`), or kernels, against peer libraries."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gemmlab.cli.answer import CsvFlag, Form, answer_form, print_document
from gemmlab.cli.console import DEVICE_HELP, REDRAW_S, progress_console, seldom
from gemmlab.cli.help_examples import kernel_names
from gemmlab.cli.option_values import parse_config, require_place, seconds_of
from gemmlab.cli.own_file import (
    ArgsFlag,
    DefineFlag,
    FactsFlag,
    GridFlag,
    IncludeFlag,
    KernelFlag,
    OpFlag,
    OptionFlag,
    RequireFlag,
    SmemFlag,
    own_flags,
    split_threads,
)
from gemmlab.core.errors import WrongResultError
from gemmlab.dispatch.precision_rule import HIGHEST, REQUESTS
from gemmlab.instruments.compile_flags import compile_flags

if TYPE_CHECKING:
    from gemmlab.instruments.bench_result import BenchResult


def bench(
    kernels: Annotated[
        list[str] | None,
        typer.Argument(
            autocompletion=kernel_names,
            metavar="[KERNEL]...",
            help="Kernels by id, or .cu files. Default: gemmlab.gemm or gemmlab.sum, else the ladder.",
        ),
    ] = None,
    op: OpFlag = None,
    sizes: Annotated[
        str | None,
        typer.Option(
            help="256, 256,512, 256:4096:128, MxNxK, MxNxK:nt:lda+4, batches B*MxNxK:b0. Default: a few typical ones."
        ),
    ] = None,
    suite: Annotated[
        bool,
        typer.Option(
            help="Time the fixed suite of shapes; with --op batch its batches of products, with --op group its groups."
        ),
    ] = False,
    family: Annotated[
        str | None, typer.Option(metavar="NAME", help="With --suite: one family of shapes, as squares or deep.")
    ] = None,
    config: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE,...", help="Time the kernel in this configuration; repeatable."),
    ] = None,
    configs: Annotated[
        str | None,
        typer.Option(metavar="all|N", help="Time every legal configuration of the tuning space, or N of them."),
    ] = None,
    peers: Annotated[
        str,
        typer.Option(
            help="Libraries to compare with. On a CPU openblas[:CORETYPE|:best], numpy[...], mkl, onednn, "
            "NAME=/path/lib.so; on a GPU cublas, torch, cupy, cublaslt (timed, but kernels are not compared with it), "
            "for sums cub. installed: all that are installed; none: no library."
        ),
    ] = "installed",
    threads: Annotated[
        str | None, typer.Option(help="Thread counts, as 1,2 (default: 1); for a .cu file its block.")
    ] = None,
    rounds: Annotated[int, typer.Option(help="Interleaved rounds in each process.")] = 15,
    processes: Annotated[int, typer.Option(help="New processes in which every contestant is timed.")] = 3,
    seed: Annotated[int, typer.Option(help="Seed of the data and of the order of turns.")] = 0,
    timeout: Annotated[
        float, typer.Option(min=1.0, help="Seconds after which a contestant that does not answer is dropped.")
    ] = 300.0,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Time limit, as 60s, 5m or 1h: after it, a contestant is timed only at sizes at which it was not yet "
            "timed. Starting and verifying count towards the limit, but are not cut short.",
        ),
    ] = None,
    verify: Annotated[bool, typer.Option(help="Compare every result with the float64 reference first.")] = True,
    device: Annotated[
        str | None, typer.Option(help=f"{DEVICE_HELP} Default: cpu, and for GPU kernels a GPU, else emulated.")
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option(
            help="Caches before each call: cold (operands in no cache) or warm. Default: warm on a CPU, cold on a GPU."
        ),
    ] = None,
    alpha: Annotated[float | None, typer.Option(help="Factor of the product. Default: 1.")] = None,
    beta: Annotated[
        float | None,
        typer.Option(help="Factor of C. Default: 0; 1 if a kernel always reads C."),
    ] = None,
    precision: Annotated[
        str,
        typer.Option(
            metavar="|".join(REQUESTS), help="The precision of the library call, or several: float32,highest."
        ),
    ] = HIGHEST,
    reproducible: Annotated[
        bool, typer.Option("--reproducible", help="Also time the library call with reproducible=True.")
    ] = False,
    packed: Annotated[
        bool, typer.Option("--packed", help="Also time the library call on a CPU with a packed b.")
    ] = False,
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
        float | None,
        typer.Option(
            help="Exit with 1 if a geometric mean of speed ratios to the fastest peers is below, 95 % certain."
        ),
    ] = None,
    floor: Annotated[
        float | None,
        typer.Option(help="Exit with 1 if a size's speed ratio to the fastest peer is below this, 95 % certain."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print record and summary as JSON, nothing else.")] = False,
    as_csv: CsvFlag = False,
    save: Annotated[Path | None, typer.Option(help="Write the record to this file.")] = None,
) -> None:
    """Time gemmlab.gemm, gemmlab.sum or kernels against peer libraries, in turns, and record every sample.

    On an emulated device nothing is timed: instructions and memory accesses are counted.
    """
    from gemmlab.core.records import save_record
    from gemmlab.instruments.benching import run_request

    form = answer_form(as_json=as_json, as_csv=as_csv)
    if save is not None:
        require_place("--save", save)
    names = kernels or []
    flags = own_flags(
        names, kernel=function, grid=grid, args=args, smem_bytes=smem_bytes, require=require,
        options=compile_flags(include, define, option), facts=facts,
    )  # fmt: skip
    workers, flags = split_threads(names, threads, flags)
    with _display() as show:
        result = run_request(
            names, op=op, sizes=sizes, device=device, mode=mode, peers=peers, threads=workers or "1", rounds=rounds,
            processes=processes, seed=seed, timeout_s=timeout, verify=verify, naive=naive,
            budget_s=math.inf if budget is None else seconds_of(budget),
            configs=[parse_config(text.split(",")) for text in config or []], some_configs=configs, suite=suite,
            shapes_of=family, precision=precision, reproducible=reproducible, packed=packed, alpha=alpha, beta=beta,
            facts=flags, target=target, floor=floor, progress=show,
        )  # fmt: skip
    if save is not None:
        save_record(result.record, save)
    if not print_document(result, form):
        _print(result)
    elif form is Form.CSV:
        for note in result.record.notes:
            typer.echo(f"note: {note}", err=True)
    if result.wrong:
        failed = [f"{row.name} at {row.size} ({row.outcome})" for row in result.counts if row.verified is False]
        if failed and form is Form.TEXT:  # The notes below the table have said why.
            raise WrongResultError(f"failed: {', '.join(failed)}")
        raise WrongResultError("\n".join(result.wrong))


def _print(result: BenchResult) -> None:
    from gemmlab.cli.bench_tables import print_tables
    from gemmlab.cli.counts import print_counts

    if result.summary is None:
        print_counts(result.record, result.counts)
    else:
        print_tables(result.record, result.summary, result.verdict)


@contextmanager
def _display() -> Iterator[Callable[[str, int, int], None]]:
    """Yield a function (text, turns done, turns in all) that draws a progress bar; without a terminal it draws none."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = progress_console()
    if not console.is_terminal:
        yield lambda _text, _done, _total: None
        return
    bar = Progress(
        BarColumn(), TimeRemainingColumn(), TextColumn("{task.description}", markup=False), console=console,
        transient=True, auto_refresh=False,
    )  # fmt: skip
    with bar:
        task = bar.add_task("starting", total=None)

        def draw(text: str, done: int, total: int) -> None:
            bar.update(task, completed=done, total=total or None, description=text[:100])
            bar.refresh()

        yield seldom(draw, REDRAW_S)


def register(app: typer.Typer) -> None:
    """Add the verb to the application."""
    app.command("bench")(bench)
