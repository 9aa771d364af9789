"""`gemmlab check`: verify the results of kernels and of `gemmlab.gemm`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Annotated, Any

import typer

from gemmlab.cli.answer import CsvFlag, answer_form
from gemmlab.cli.check_codes import check_codes, is_machine_code
from gemmlab.cli.check_outcome import answer
from gemmlab.cli.console import DEVICE_HELP
from gemmlab.cli.help_examples import kernel_names
from gemmlab.cli.option_values import parse_config, parse_thread_count
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
from gemmlab.cli.timeout import DEFAULT_S, limited
from gemmlab.instruments.check_runs import LIBRARY
from gemmlab.instruments.compile_flags import compile_flags


def check(
    kernels: Annotated[
        list[str] | None,
        typer.Argument(
            autocompletion=kernel_names,
            metavar="[KERNEL]...",
            help=f"Kernels, .cu files, {LIBRARY}, or cubins. Default: the ladder and {LIBRARY}.",
        ),
    ] = None,
    op: OpFlag = None,
    sizes: Annotated[
        str | None,
        typer.Option(
            help="Sizes to check: 256 or 256,512 or 256:4096:128 or MxNxK. Default: the cases of --quick or --full."
        ),
    ] = None,
    threads: Annotated[
        str | None,
        typer.Option(help="Threads of kernels that use several (default: all cores); for a .cu file its block."),
    ] = None,
    device: Annotated[
        str | None, typer.Option(help=f"{DEVICE_HELP} Default: cpu, and for GPU kernels a GPU, else emulated.")
    ] = None,
    full: Annotated[
        bool,
        typer.Option("--full/--quick", help="All cases, or only those that a naive loop computes in a second."),
    ] = False,
    config: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="A kernel parameter; repeatable.")
    ] = None,
    function: KernelFlag = None,
    grid: GridFlag = None,
    args: ArgsFlag = None,
    smem_bytes: SmemFlag = None,
    facts: FactsFlag = None,
    include: IncludeFlag = None,
    define: DefineFlag = None,
    option: OptionFlag = None,
    require: RequireFlag = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the data and of the random cases.")] = 0,
    timeout: Annotated[
        float,
        typer.Option(
            "--timeout", metavar="SECONDS", help="Stop each kernel after this time, report its progress, exit with 1."
        ),
    ] = DEFAULT_S,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    as_csv: CsvFlag = False,
) -> None:
    """Compare results element by element with a float64 reference, and find accesses outside the operands.

    For a .cubin, check the control codes: an instruction must wait for the results that it reads or overwrites.

    Exits with 1 if a kernel fails, and shows the first wrong element; exits with 1 if the time limit is reached.
    """
    from gemmlab.instruments.check_result import CheckState
    from gemmlab.instruments.checking import check_runs, run_checks

    form, state = answer_form(as_json=as_json, as_csv=as_csv), CheckState()
    names = kernels or []
    if is_machine_code(names):
        check_codes(names, as_json=as_json)
        return
    flags = own_flags(
        names, kernel=function, grid=grid, args=args, smem_bytes=smem_bytes, require=require,
        options=compile_flags(include, define, option), facts=facts,
    )  # fmt: skip
    workers, flags = split_threads(names, threads, flags)

    def limit() -> AbstractContextManager[object]:
        return limited(timeout, lambda error: answer(state.overdue(error), form))

    with limit():
        runs = check_runs(
            names, op=op, sizes=sizes, device=device, threads=parse_thread_count(workers),
            config=parse_config(config or []), full=full, facts=flags, seed=seed,
        )  # fmt: skip
    with _progress() as show:
        checked = run_checks(runs, state, limit, show)
    answer(checked, form)
    if any(not report.passed for report in checked.reports):
        raise typer.Exit(1)
    if checked.errors:
        raise typer.Exit(max(error.exit_code for error in checked.errors.values()))


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    from rich.progress import Progress as Bar

    from gemmlab.cli.console import progress_console

    with Bar(console=progress_console(), transient=True) as bar:
        tasks: dict[str, Any] = {}

        def show(name: str, done: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = bar.add_task(name, total=total)
            bar.update(tasks[name], completed=done)

        yield show


def register(app: typer.Typer) -> None:
    app.command("check")(check)
