"""`gemmlab check`: whether the kernels and the library call are right."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gemmlab.cli.answer import print_json
from gemmlab.cli.console import DEVICE_HELP
from gemmlab.cli.own_file import ArgsFlag, GridFlag, KernelFlag, RequireFlag, SmemFlag, own_flags, split_threads
from gemmlab.core.errors import GemmlabError, UsageError
from gemmlab.core.words import counted
from gemmlab.devices.select import open_device

if TYPE_CHECKING:
    from gemmlab.devices.device import Device
    from gemmlab.kernels.kernel import Kernel
    from gemmlab.ops.op import Op, Problem
    from gemmlab.verify.check import CheckReport, Progress

LIBRARY = "gemmlab.gemm"
"""What the library call is named among the kernels."""


def parse_config(texts: list[str]) -> dict[str, int]:
    """`["MR=12", "NR=32"]` as a configuration; `UsageError` for anything else."""
    config = {}
    for text in texts:
        name, _, value = text.partition("=")
        if not re.fullmatch(r"[A-Z][A-Z0-9_]*", name) or not re.fullmatch(r"-?[0-9]{1,9}", value):
            raise UsageError(f"--config {text!r}: write NAME=VALUE, as in MR=12")
        config[name] = int(value)
    return config


def parse_thread_count(text: str | None) -> int | None:
    """A thread count; `UsageError` for what is no whole number."""
    try:
        return None if text is None else int(text)
    except ValueError:
        raise UsageError(f"--threads {text!r}: not a whole number") from None


def check(
    kernels: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KERNEL]...", help=f"Kernels, .cu files or {LIBRARY}. Default: the ladder and {LIBRARY}."
        ),
    ] = None,
    op: Annotated[str | None, typer.Option(help="The operation. Default: of what is named, else gemm.")] = None,
    sizes: Annotated[
        str | None,
        typer.Option(help="Only these: 256 or 256,512 or 256:4096:128 or MxNxK. Default: the whole contract."),
    ] = None,
    threads: Annotated[
        str | None, typer.Option(help="Threads, for what can use them (default: all cores). Of a .cu file: its block.")
    ] = None,
    device: Annotated[str, typer.Option(help=DEVICE_HELP)] = "cpu",
    full: Annotated[
        bool, typer.Option("--full/--quick", help="All cases, or a second's worth of a naive loop.")
    ] = False,
    config: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="A kernel parameter; repeatable.")
    ] = None,
    function: KernelFlag = None,
    grid: GridFlag = None,
    args: ArgsFlag = None,
    smem_bytes: SmemFlag = None,
    require: RequireFlag = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the data and of the random cases.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare results element by element with a float64 reference, between guard bands.

    Ends with 1, and says which element is wrong, when a result is outside its bound.
    """
    from gemmlab.ops.catalog import find_op
    from gemmlab.timing.families import operation_of

    names = kernels or []
    flags = own_flags(names, kernel=function, grid=grid, args=args, smem_bytes=smem_bytes, require=require)
    workers, flags = split_threads(names, threads, flags)
    operation = find_op(op or operation_of(names, flags))
    problems = operation.parse_sizes(sizes) if sizes is not None else None
    target = open_device(device)
    plan = _plan(names, operation, target, problems, parse_thread_count(workers), "full" if full else "quick",
                 parse_config(config or []), seed, flags)  # fmt: skip
    reports, errors = _run(plan)
    if as_json:
        data = [report.to_json() for report in reports]
        passed = not errors and all(report.passed for report in reports)
        print_json({"passed": passed, "reports": data, "errors": {n: str(e) for n, e in errors.items()}})
    else:
        _print(reports, errors)
    if any(not report.passed for report in reports):
        raise typer.Exit(1)
    if errors:
        raise typer.Exit(max(error.exit_code for error in errors.values()))


def _plan(
    names: list[str], op: Op, device: Device, problems: list[Problem] | None, threads: int | None, scale: str,
    config: Mapping[str, int], seed: int, flags: Mapping[str, Any],
) -> dict[str, Callable[[Progress], CheckReport]]:  # fmt: skip
    from gemmlab.core.hardware import physical_cores, require_cpus
    from gemmlab.kernels.by_name import kernel_named, require_device
    from gemmlab.kernels.catalog import ladder
    from gemmlab.timing.families import family_of
    from gemmlab.verify.check import check_kernel

    if config and not names:
        raise UsageError("--config: name the kernel it is for")
    where = device.device_name
    if threads is not None:
        require_cpus(threads)
    # Two threads on a single core still show races.
    workers = max(2, physical_cores()) if threads is None else threads
    plan: dict[str, Callable[[Progress], CheckReport]] = {}

    def of_kernel(kernel: Kernel) -> Callable[[Progress], CheckReport]:
        cases = None if problems is None else [q for p in problems for q in op.in_layouts(p, kernel.layouts)]
        return lambda progress: check_kernel(
            kernel, device, op, config=config, threads=workers if kernel.threaded else 1, cases=cases, scale=scale,
            seed=seed, progress=progress,
        )  # fmt: skip

    library = family_of(where.family, op.name).library_call
    for name in names or [*(kernel.id for kernel in ladder(op.name, where.kernels)), *([library] if library else [])]:
        if name in _LIBRARY_CHECKS:
            if name != library:
                raise UsageError(f"{name} does not run on {where}, or is not of the operation {op.name}")
            if config:
                raise UsageError(f"--config: {name} has no parameters")
            plan[name] = _LIBRARY_CHECKS[name](problems, workers, scale, seed)
            continue
        kernel = require_device(kernel_named(name, flags), where)
        if kernel.op != op.name:
            raise UsageError(f"{name} is a kernel for {kernel.op}, not for {op.name}")
        plan[name] = of_kernel(kernel)
    if not plan:
        raise UsageError(f"no ladder of {op.name} for {where}")
    return plan


def _sum_call(problems: list[Any] | None, threads: int, scale: str, seed: int) -> Callable[[Progress], CheckReport]:
    def run(progress: Progress) -> CheckReport:
        import gemmlab
        from gemmlab.verify.check_sum import check_sum

        total: Callable[..., Any] = gemmlab.sum
        return check_sum(
            total, name="gemmlab.sum", threads=threads, problems=problems, scale=scale, seed=seed, progress=progress
        )

    return run


def _product_call(problems: list[Any] | None, threads: int, scale: str, seed: int) -> Callable[[Progress], CheckReport]:
    def run(progress: Progress) -> CheckReport:
        import gemmlab
        from gemmlab.verify.check_call import Call, check_callable

        calls = None if problems is None else [Call(problem, ("plain",) * 3, "out") for problem in problems]
        gemm: Callable[..., Any] = gemmlab.gemm
        return check_callable(
            gemm, name=LIBRARY, threads=threads, calls=calls, scale=scale, seed=seed, progress=progress
        )

    return run


_LIBRARY_CHECKS = {LIBRARY: _product_call, "gemmlab.sum": _sum_call}
"""What the library's functions are named among the kernels, and how each is checked."""


def _run(plan: Mapping[str, Callable[[Progress], CheckReport]]) -> tuple[list[CheckReport], dict[str, GemmlabError]]:
    reports: list[CheckReport] = []
    errors: dict[str, GemmlabError] = {}
    with _progress() as show:
        for name, run in plan.items():
            try:
                reports.append(run(partial(show, name)))
            except GemmlabError as error:
                errors[name] = error
    return reports, errors


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


def _print(reports: list[CheckReport], errors: Mapping[str, GemmlabError]) -> None:
    from rich.table import Table

    from gemmlab.cli.console import table_console

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("kernel", "result", "cases", "threads", "error/bound", "error/|c|/K", "seconds"):
        table.add_column(heading, justify="left" if heading in ("kernel", "result") else "right")
    for report in reports:
        verdict = "PASS" if report.passed else "FAIL"
        measures = (f"{report.worst_ratio:.3f}", f"{report.source_error:.1e}", f"{report.seconds:.1f}")
        numbers = (str(report.cases), str(report.threads), *measures)
        table.add_row(report.subject, verdict, *numbers)
    for name in errors:
        table.add_row(name, "ERROR", "", "", "", "", "")
    table_console().print(table)
    for report in reports:
        if not report.passed:
            typer.echo("\n" + report.explain())
            continue
        for reason, count in report.refused.items():
            typer.echo(f"{report.subject}: {counted(count, 'case')} left out: it needs {reason}")
    for name, error in errors.items():
        typer.echo(f"\n{name}: {error}")


def register(app: typer.Typer) -> None:
    app.command("check")(check)
