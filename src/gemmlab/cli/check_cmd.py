"""`gemmlab check`: verify the results of kernels and of the library call."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gemmlab.cli.answer import print_json
from gemmlab.cli.console import DEVICE_HELP
from gemmlab.cli.own_file import ArgsFlag, GridFlag, KernelFlag, RequireFlag, SmemFlag, own_flags, split_threads
from gemmlab.cli.timeout import DEFAULT_S, limited
from gemmlab.core.errors import GemmlabError, TimeLimitError, UsageError
from gemmlab.core.words import counted
from gemmlab.devices.select import open_device

if TYPE_CHECKING:
    from gemmlab.devices.device import Device
    from gemmlab.kernels.by_name import NamedKernel
    from gemmlab.kernels.kernel import Kernel
    from gemmlab.ops.op import Op, Problem
    from gemmlab.verify.check import CheckReport, Progress

LIBRARY = "gemmlab.gemm"
"""Name of the library call on the command line, among the kernels."""


def parse_config(texts: list[str]) -> dict[str, int]:
    """Parse `["MR=12", "NR=32"]` into a configuration; raise `UsageError` for anything else."""
    config = {}
    for text in texts:
        name, _, value = text.partition("=")
        if not re.fullmatch(r"[A-Z][A-Z0-9_]*", name) or not re.fullmatch(r"-?[0-9]{1,9}", value):
            raise UsageError(f"--config {text!r}: write NAME=VALUE, as in MR=12")
        config[name] = int(value)
    return config


def parse_thread_count(text: str | None) -> int | None:
    """Parse a thread count; raise `UsageError` for anything but a whole number."""
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
    op: Annotated[str | None, typer.Option(help="Operation. Default: that of the kernels named, else gemm.")] = None,
    sizes: Annotated[
        str | None,
        typer.Option(help="Sizes to check: 256 or 256,512 or 256:4096:128 or MxNxK. Default: the whole contract."),
    ] = None,
    threads: Annotated[
        str | None,
        typer.Option(help="Threads of kernels that use several (default: all cores); for a .cu file its block."),
    ] = None,
    device: Annotated[str, typer.Option(help=DEVICE_HELP)] = "cpu",
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
    flags = own_flags(names, kernel=function, grid=grid, args=args, smem_bytes=smem_bytes, require=require)
    workers, flags = split_threads(names, threads, flags)
    found = named_kernels([name for name in names if not library_operation(name)], flags)
    operation = find_op(op or operation_of(names, found))
    problems = operation.parse_sizes(sizes) if sizes is not None else None
    checked = _Checked()

    def limit() -> AbstractContextManager[object]:
        return limited(timeout, lambda error: _answer(checked.overdue(error), as_json=as_json))

    with limit():
        request = _Request(
            names=names, kernels=found, op=operation, problems=problems, device=open_device(device),
            threads=parse_thread_count(workers), scale="full" if full else "quick",
            config=parse_config(config or []), seed=seed,
        )  # fmt: skip
        runs = request.runs()
    _run(runs, checked, limit)
    _answer(checked, as_json=as_json)
    if any(not report.passed for report in checked.reports):
        raise typer.Exit(1)
    if checked.errors:
        raise typer.Exit(max(error.exit_code for error in checked.errors.values()))


@dataclass(slots=True)
class _Checked:
    """Reports and errors so far."""

    reports: list[CheckReport] = field(default_factory=list)
    errors: dict[str, GemmlabError] = field(default_factory=dict)
    not_checked: Sequence[str] = ()
    """Names of the checks that were not started because the process had to end."""
    waiting: Sequence[str] = ()
    """Names of the checks after the running one."""
    running: str = ""
    so_far: str = ""
    """Progress of the running check, in words."""

    @property
    def passed(self) -> bool:
        return not (self.errors or self.not_checked) and all(report.passed for report in self.reports)

    @property
    def timed_out(self) -> bool:
        errors = any(isinstance(error, TimeLimitError) for error in self.errors.values())
        return errors or bool(self.not_checked) or any(report.timed_out for report in self.reports)

    def overdue(self, error: TimeLimitError) -> _Checked:
        """Return the same with a timeout error for the running check, which cannot be interrupted: the process ends."""
        message = f"{self.so_far}; {error}" if self.so_far else str(error)
        errors = {**self.errors, self.running or "check": TimeLimitError(message)}
        return replace(self, errors=errors, not_checked=self.waiting)


def _answer(checked: _Checked, *, as_json: bool) -> None:
    if as_json:
        print_json({
            "passed": checked.passed, "timed_out": checked.timed_out,
            "reports": [report.to_json() for report in checked.reports],
            "errors": {name: str(error) for name, error in checked.errors.items()},
            "not_checked": [*checked.not_checked],
        })  # fmt: skip
    else:
        _print(checked)


@dataclass(frozen=True, slots=True)
class _Request:
    """The parsed command line, with kernels loaded and the device open."""

    names: Sequence[str]
    """Names of kernels and library functions, in order; empty for the ladder and the library's function."""
    kernels: Mapping[str, NamedKernel]
    op: Op
    problems: Sequence[Problem] | None
    """Problems to check; `None` for all cases that a kernel must compute."""
    device: Device
    threads: int | None
    """Thread count; `None` for all cores, at least 2."""
    scale: str
    config: Mapping[str, int]
    seed: int

    def runs(self) -> dict[str, Callable[[Progress], CheckReport]]:
        """Return a function for each check, by the name of the kernel or library function. Raises `UsageError`."""
        from gemmlab.core.hardware import physical_cores, require_cpus
        from gemmlab.kernels.by_name import NamedKernel, is_own, require_device
        from gemmlab.kernels.catalog import ladder
        from gemmlab.timing.families import family_of

        if self.config and not self.names:
            raise UsageError("--config: name the kernel it is for")
        op, where = self.op, self.device.device_name
        if self.threads is not None:
            require_cpus(self.threads)
        # Two threads on a single core still show races.
        workers = max(2, physical_cores()) if self.threads is None else self.threads
        library = family_of(where.family, op.name).library_call
        kernels, names = self.kernels, self.names
        if not names:
            kernels = {kernel.id: NamedKernel(kernel) for kernel in ladder(op.name, where.kernels)}
            names = [*kernels, *([library] if library else [])]
        found: dict[str, Callable[[Progress], CheckReport]] = {}
        for name in names:
            if name in _LIBRARY_CHECKS:
                if name != library:
                    raise UsageError(f"{name} does not run on {where}, or is not of the operation {op.name}")
                if self.config:
                    raise UsageError(f"--config: {name} has no parameters")
                found[name] = _LIBRARY_CHECKS[name](self.problems, workers, self.scale, self.seed)
                continue
            kernel = require_device(kernels[name].kernel, where)
            if kernel.op != op.name:
                raise UsageError(f"{name} is a kernel for {kernel.op}, not for {op.name}")
            found[name if is_own(name) else kernel.id] = self._kernel_run(kernel, workers)
        if not found:
            raise UsageError(f"no ladder of {op.name} for {where}")
        return found

    def _kernel_run(self, kernel: Kernel, workers: int) -> Callable[[Progress], CheckReport]:
        from gemmlab.verify.check import check_kernel

        cases = None
        if self.problems is not None:
            cases = [case for problem in self.problems for case in self.op.in_layouts(problem, kernel.layouts)]
        return lambda progress: check_kernel(
            kernel, self.device, self.op, config=self.config, threads=workers if kernel.threaded else 1, cases=cases,
            scale=self.scale, seed=self.seed, progress=progress,
        )  # fmt: skip


def _sum_call(problems: Sequence[Any] | None, threads: int, scale: str, seed: int) -> Callable[[Progress], CheckReport]:
    def run(progress: Progress) -> CheckReport:
        import gemmlab
        from gemmlab.verify.check_sum import check_sum

        total: Callable[..., Any] = gemmlab.sum
        return check_sum(
            total, name="gemmlab.sum", threads=threads, problems=problems, scale=scale, seed=seed, progress=progress
        )

    return run


def _product_call(
    problems: Sequence[Any] | None, threads: int, scale: str, seed: int
) -> Callable[[Progress], CheckReport]:
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
"""Name of a library function on the command line -> maker of its check."""


def _run(
    runs: Mapping[str, Callable[[Progress], CheckReport]], checked: _Checked,
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


def _print(checked: _Checked) -> None:
    from rich.table import Table

    from gemmlab.cli.console import table_console

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("kernel", "result", "cases", "threads", "error/bound", "error/|c|/K", "seconds"):
        table.add_column(heading, justify="left" if heading in ("kernel", "result") else "right")
    for report in checked.reports:
        verdict = "PASS" if report.passed else "FAIL" if report.failures else "STOPPED"
        measures = (f"{report.worst_ratio:.3f}", f"{report.source_error:.1e}", f"{report.seconds:.1f}")
        numbers = (str(report.cases), str(report.threads), *measures)
        table.add_row(report.subject, verdict, *numbers)
    for name, error in checked.errors.items():
        table.add_row(name, "STOPPED" if isinstance(error, TimeLimitError) else "ERROR", "", "", "", "", "")
    for name in checked.not_checked:
        table.add_row(name, "NOT RUN", "", "", "", "", "")
    table_console().print(table)
    for report in checked.reports:
        if not report.passed:
            typer.echo("\n" + report.explain())
            continue
        for reason, count in report.refused.items():
            typer.echo(f"{report.subject}: {counted(count, 'case')} left out: it needs {reason}")
    for name, error in checked.errors.items():
        typer.echo(f"\n{name}: {error}")
    if checked.not_checked:
        typer.echo(f"\nNot checked, because the process had to end: {', '.join(checked.not_checked)}")


def register(app: typer.Typer) -> None:
    app.command("check")(check)
