"""`gemmlab tune`: search a kernel's configurations within a budget, or measure this machine for `gemmlab.gemm`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gemmlab.cli.answer import CsvFlag, answer_form, print_document
from gemmlab.cli.console import DEVICE_HELP, REDRAW_S, progress_console, seldom
from gemmlab.cli.help_examples import kernel_names
from gemmlab.cli.option_values import require_place, seconds_of
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
    own_flags,
    split_threads,
)
from gemmlab.core.errors import UsageError
from gemmlab.instruments.compile_flags import compile_flags

if TYPE_CHECKING:
    from rich.console import Console

    from gemmlab.tuning.session import Tuning

LINE_S = 30.0
"""Least time in seconds between two lines on the progress without a terminal."""
HELP = """Search a kernel's configurations within a budget; --library measures this machine for gemmlab.gemm.

\b
gemmlab tune async_copy --device cuda --sizes 4096 --budget 60s
gemmlab tune mine.cu --device emulated      by predicted time, no GPU
gemmlab tune --library --device cuda        what gemmlab.gemm will choose
gemmlab tune --show

The header of the file states the values to try: `tune = { BM = [64, 128] }`. If a search was stopped, the same command
continues it.
"""


def tune(
    kernel: Annotated[
        str | None,
        typer.Argument(autocompletion=kernel_names, metavar="[KERNEL]", help="A kernel by id, or a .cu file."),
    ] = None,
    sizes: Annotated[
        str | None, typer.Option(help="Sizes as gemmlab bench takes them; each is tuned by itself.")
    ] = None,
    budget: Annotated[str, typer.Option(metavar="TIME", help="Time for all sizes, as 60s, 5m or 1h.")] = "60s",
    device: Annotated[
        str | None, typer.Option(help=f"{DEVICE_HELP} Default: cpu, and for a .cu file a GPU, else emulated.")
    ] = None,
    mode: Annotated[
        str | None, typer.Option(help="Caches before each call: cold or warm. Default: warm on a CPU, cold on a GPU.")
    ] = None,
    threads: Annotated[str | None, typer.Option(help="Threads of a CPU kernel; for a .cu file its block.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the search.")] = 0,
    fresh: Annotated[bool, typer.Option("--fresh", help="Discard what an earlier search measured.")] = False,
    counters: Annotated[
        bool, typer.Option(help="Explain the effect of parameters by the emulator's counters (GPU kernels).")
    ] = True,
    library: Annotated[
        bool, typer.Option("--library", help="Measure what gemmlab.gemm chooses from, and store it for this user.")
    ] = False,
    shapes: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --library: a file with one size in each line.")
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Show the stored choices.")] = False,
    export_to: Annotated[
        Path | None, typer.Option("--export", metavar="FILE", help="Write the store to a file.")
    ] = None,
    import_from: Annotated[
        Path | None, typer.Option("--import", metavar="FILE", help="Merge a file that --export wrote into the store.")
    ] = None,
    forget: Annotated[bool, typer.Option("--forget", help="Forget the stored choices of this machine.")] = False,
    function: KernelFlag = None,
    grid: GridFlag = None,
    args: ArgsFlag = None,
    smem_bytes: SmemFlag = None,
    facts: FactsFlag = None,
    include: IncludeFlag = None,
    define: DefineFlag = None,
    option: OptionFlag = None,
    require: RequireFlag = None,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE.svg", help="Draw the effect of each parameter; .svg, .png or .html.")
    ] = None,
    save: Annotated[
        Path | None, typer.Option(help="Write the measurements as a record, for gemmlab report and compare.")
    ] = None,
    t4: Annotated[
        Path | None,
        typer.Option("--t4", metavar="FILE.json", help="Write them in the T4 format, as Kernel Tuner does."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON, nothing else.")] = False,
    as_csv: CsvFlag = False,
) -> None:
    from gemmlab.cli.tune_tables import print_tuning
    from gemmlab.devices.device_name import parse_device
    from gemmlab.instruments.tune_request import TuneRequest
    from gemmlab.instruments.tune_result import TuneResult
    from gemmlab.tuning.outcome_record import require_measured

    form = answer_form(as_json=as_json, as_csv=as_csv)
    options = {
        "--show": show, "--export": export_to, "--import": import_from, "--forget": forget, "--library": library,
    }  # fmt: skip
    verbs = [name for name, value in options.items() if value]
    if len(verbs) > 1 or (verbs and kernel):
        raise UsageError(f"{' and '.join([*verbs, *filter(None, [kernel])])}: only one of them can be given")
    if verbs:
        from gemmlab.cli.tune_library import store_command

        store_command(
            verbs[0], device=device or "cpu", mode=mode, budget=seconds_of(budget), shapes=shapes, sizes=sizes,
            file=export_to or import_from, fresh=fresh, form=form,
        )  # fmt: skip
        return
    if kernel is None:
        raise UsageError("name a kernel or a .cu file, or give --library (`gemmlab list` shows the kernels)")
    if (several := [name for name, path in (("--save", save), ("--picture", picture), ("--t4", t4)) if path]) and (
        sizes is not None and "," in sizes
    ):
        raise UsageError(f"{several[0]}: takes one size; name one with --sizes")
    for flag, path in (("--save", save), ("--picture", picture), ("--t4", t4)):
        if path is not None:
            require_place(flag, path)
    where = device or _usual_device(kernel, mode)
    if save is not None:
        require_measured(parse_device(where).family)
    flags = own_flags(
        [kernel], kernel=function, grid=grid, args=args, smem_bytes=smem_bytes, require=require,
        options=compile_flags(include, define, option), facts=facts,
    )  # fmt: skip
    workers, flags = split_threads([kernel], threads, flags)
    request = TuneRequest(
        kernel, flags, device=where, mode=mode, sizes=sizes, budget_s=seconds_of(budget), threads=_threads(workers),
        seed=seed, fresh=fresh, counters=counters,
    )  # fmt: skip
    with progress_status() as status:
        found = request.run(status)
    first, of = found[0]
    if picture is not None:
        _draw(first, picture)
    if save is not None:
        from gemmlab.core.records import save_record
        from gemmlab.tuning.outcome_record import record_of

        save_record(record_of(first, of), save)
    if t4 is not None:
        from gemmlab.tuning.exchange import write_t4
        from gemmlab.tuning.replay import read_space

        write_t4(read_space(Path(first.journal)), t4)
    if print_document(TuneResult(tuple(one for one, _ in found)), form):
        return
    for one, _ in found:
        print_tuning(one)


@contextmanager
def progress_status() -> Iterator[Callable[[str, int, int], object]]:
    """Yield a function that shows its text: on a terminal at most once in `REDRAW_S` seconds, elsewhere as a line on
    standard error, at most one in `LINE_S` seconds.

    Ctrl-C is answered with a line on standard error.
    """
    console = progress_console()
    try:
        with _status(console) as show:
            yield show
    except KeyboardInterrupt:
        console.print("gemmlab: stopped; the same command continues from here")
        raise


@contextmanager
def _status(console: Console) -> Iterator[Callable[[str, int, int], object]]:
    if not console.is_terminal:
        yield seldom(lambda text, *_of: console.print(text, markup=False, highlight=False), LINE_S, time.monotonic())
        return
    with console.status("starting") as status:
        yield seldom(lambda text, *_of: status.update(text), REDRAW_S)


def _usual_device(kernel: str, mode: str | None) -> str:
    """Return the device if the command line names none: the CPU; for a `.cu` file a GPU, or else an emulated one."""
    from gemmlab.instruments.defaults import open_gpu
    from gemmlab.kernels.by_name import is_own

    return open_gpu(mode, "times are predicted on {}, not measured").id if is_own(kernel) else "cpu"


def _threads(text: str | None) -> int:
    if text is None:
        return 1
    if not text.isdecimal() or not int(text):
        raise UsageError(f"--threads {text}: a number of threads")
    return int(text)


def _draw(found: Tuning, path: Path) -> None:
    from gemmlab.plots.chart import save
    from gemmlab.plots.sensitivity_chart import sensitivity_chart

    save(sensitivity_chart(found.sensitivity), path)


def register(app: typer.Typer) -> None:
    """Add the verb to the application."""
    app.command("tune", help=HELP)(tune)
