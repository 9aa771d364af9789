"""`gemmlab check`: verify the results of kernels and of the library call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gemmlab.cli.check_outcome import Checked, answer
from gemmlab.cli.check_runs import LIBRARY, CheckRequest
from gemmlab.cli.console import DEVICE_HELP
from gemmlab.cli.default_device import open_for
from gemmlab.cli.help_examples import kernel_names
from gemmlab.cli.option_values import parse_config, parse_thread_count
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
from gemmlab.cli.timeout import DEFAULT_S, limited
from gemmlab.core.errors import GemmlabError
from gemmlab.core.words import counted

if TYPE_CHECKING:
    from gemmlab.verify.check import CheckReport, Progress


def check(
    kernels: Annotated[
        list[str] | None,
        typer.Argument(
            autocompletion=kernel_names,
            metavar="[KERNEL]...",
            help=f"Kernels, .cu files or {LIBRARY}. Default: the ladder and {LIBRARY}.",
        ),
    ] = None,
    op: Annotated[str | None, typer.Option(help="Operation. Default: that of the kernels named, else gemm.")] = None,
    sizes: Annotated[
        str | None,
        typer.Option(help="Sizes to check: 256 or 256,512 or 256:4096:128 or MxNxK. Default: the whole contract."),
    ] = None,
    threads: Annotated[
        str | None,
        typer.Option(help="Threads of kernels that use several (default: all cores); for a .cu file its block."),
    ] = None,
    device: Annotated[
        str | None, typer.Option(help=f"{DEVICE_HELP} Default: cpu, and for GPU kernels a GPU, else emulated.")
    ] = None,
    full: Annotated[
        bool, typer.Option("--full/--quick", help="All cases, or those that a naive loop computes in a second.")
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
            "--timeout", metavar="SECONDS", help="Stop each kernel after so long, say how far it came, end with 1."
        ),
    ] = DEFAULT_S,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare results element by element with a float64 reference, between guard bands.

    Ends with 1, and says which element is wrong, when a result is outside its bound, or when the time is over.
    """
    from gemmlab.kernels.by_name import named_kernels
    from gemmlab.ops.catalog import find_op
    from gemmlab.timing.families import library_operation, operation_of

    names = kernels or []
    flags = own_flags(
        names, kernel=function, grid=grid, args=args, smem_bytes=smem_bytes, require=require,
        options=compile_flags(include, define, option), facts=facts,
    )  # fmt: skip
    workers, flags = split_threads(names, threads, flags)
    found = named_kernels([name for name in names if not library_operation(name)], flags)
    operation = find_op(op or operation_of(names, found))
    problems = operation.parse_sizes(sizes) if sizes is not None else None
    checked = Checked()

    def limit() -> AbstractContextManager[object]:
        return limited(timeout, lambda error: answer(checked.overdue(error), as_json=as_json))

    with limit():
        request = CheckRequest(
            names=names, kernels=found, op=operation, problems=problems, device=open_for(device, found.values()),
            threads=parse_thread_count(workers), scale="full" if full else "quick",
            config=parse_config(config or []), seed=seed,
        )  # fmt: skip
        runs = request.runs()
    _run(runs, checked, limit)
    answer(checked, as_json=as_json)
    if any(not report.passed for report in checked.reports):
        raise typer.Exit(1)
    if checked.errors:
        raise typer.Exit(max(error.exit_code for error in checked.errors.values()))


def _run(
    runs: Mapping[str, Callable[[Progress], CheckReport]], checked: Checked,
    limit: Callable[[], AbstractContextManager[object]],
) -> None:  # fmt: skip
    """Run the checks one after another, each within a time limit of its own."""
    names = [*runs]
    with _progress() as show:
        for index, (name, run) in enumerate(runs.items()):
            checked.running, checked.so_far, checked.waiting = name, "", names[index + 1 :]

            def progress(done: int, total: int, name: str = name) -> None:
                checked.so_far = f"{done} of {counted(total, 'case')} checked"
                show(name, done, total)

            try:
                with limit():
                    checked.reports.append(run(progress))
            except GemmlabError as error:
                checked.errors[name] = error


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
