"""`gemmlab.check`: verify the results of kernels and of gemmlab's own functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

from gemmlab.core.errors import GemmlabError, UsageError
from gemmlab.core.time_limit import require_seconds, time_limit
from gemmlab.core.words import counted
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
from gemmlab.instruments.check_result import CheckResult, CheckState
from gemmlab.instruments.check_runs import CheckRequest
from gemmlab.instruments.choice_check import check_choice
from gemmlab.instruments.defaults import open_for
from gemmlab.kernels.by_name import named_kernels
from gemmlab.kernels.choice_exercise import SUFFIX
from gemmlab.ops.catalog import find_op
from gemmlab.timing.families import library_operation, operation_of
from gemmlab.verify.case_tally import Progress as CaseProgress
from gemmlab.verify.check_report import CheckReport

Runs = Mapping[str, Callable[[CaseProgress], CheckReport]]
"""Name of a kernel or library function -> its check."""
Progress = Callable[[str, int, int], None]
"""Function called with (name of the kernel, cases done, cases in all)."""


def check(
    *kernels: KernelName,
    op: OpName | None = None,
    sizes: Sizes | None = None,
    device: str | None = None,
    threads: int | None = None,
    config: Mapping[str, int] | None = None,
    full: bool = False,
    facts: Facts | None = None,
    seed: int = 0,
    timeout_s: float | None = None,
    progress: Progress | None = None,
) -> CheckResult:
    """Compare results element by element with a float64 reference, between guard bands.

    `kernels` are ids (`"naive"`), paths of `.cu` files, CUDA C++ as text, `"gemmlab.gemm"` and `"gemmlab.sum"`, or the
    `.toml` files of an exercise's solutions, which state all the rest; without any, the ladder of `op` (`"gemm"`) and
    the library call. `op` may also be a Python file or an `Operation`. `sizes` are 256, (M, N, K) or a list of such, or
    the text of `--sizes`; by default the cases of the operation's contract, with `full` also the slow ones. `config`
    sets parameters of the kernels. `facts` about a `.cu` file are the keys of its `/* gemmlab` comment as a dictionary
    (`{"grid": "ceil_div(N, 32), ceil_div(M, 32)", "threads": "32, 32"}`), or a `.toml` file's path.

    `device` is `"cpu"`, `"cuda[:N]"` or `"emulated[:sm_XX]"`; by default the CPU, and for GPU kernels a GPU, else the
    emulator. `threads` is the number for kernels that use several, by default all cores, at least 2. Equal values of
    `seed` give equal data. `timeout_s` limits the check of each kernel, in seconds. `progress(name, done, total)` is
    called after each case.

    A kernel that does not compile, or lacks a parameter in `config`, is in `errors` of the result; the others are
    checked. A time limit ends a kernel's check with a report that is `timed_out`, or else with an error in `errors`.
    Raises `ArgumentTypeError`, `UsageError` (an unknown kernel or size), `DeviceError` and `MemoryError`.
    """
    require_seconds("check: timeout_s", timeout_s)
    names = kernel_names(kernels)
    runs = check_runs(
        names, op=op, sizes=size_text(sizes), device=device, threads=threads, config=config or {}, full=full,
        facts=stated_facts(facts, names), seed=seed,
    )  # fmt: skip
    return run_checks(runs, CheckState(), lambda: time_limit(timeout_s), progress)


def check_runs(
    names: Sequence[str], *, op: OpName | None, sizes: str | None, device: str | None, threads: int | None,
    config: Mapping[str, int], full: bool, facts: Mapping[str, Any], seed: int,
) -> Runs:  # fmt: skip
    """Return the requested checks; `names` and `sizes` are as on the command line. Raises as `check` does."""
    if solutions := [name for name in names if name.endswith(SUFFIX)]:
        return _solutions(names, solutions, options=[op, sizes, device, config], seed=seed)
    requested, facts = operation_argument(op, names, facts)
    found = named_kernels([name for name in names if not library_operation(name)], facts)
    operation = find_op(operation_of(names, found, requested))
    problems = operation.parse_sizes(sizes) if sizes is not None else None
    return CheckRequest(
        names=names, kernels=found, op=operation, problems=problems, device=open_for(device, found.values()),
        threads=threads, scale="full" if full else "quick", config=config, seed=seed,
    ).runs()  # fmt: skip


def _solutions(names: Sequence[str], solutions: Sequence[str], *, options: Sequence[object], seed: int) -> Runs:
    """Return the checks of `solutions`, files of values for CPU exercises, which state their own sizes and device.

    Raises `UsageError` if `names` has others, or an option is set.
    """
    if len(solutions) < len(names) or any(options):
        raise UsageError(f"{solutions[0]}: an exercise is checked alone, at its own sizes and on its own device")
    return {name: partial(check_choice, Path(name), seed) for name in solutions}


def run_checks(
    runs: Runs, state: CheckState, limit: Callable[[], AbstractContextManager[object]], progress: Progress | None = None
) -> CheckResult:
    """Run the checks one after another, each within a context that `limit` returns and that may end it.

    Reports and `GemmlabError`s are added to `state`, which is also kept up to date while a check runs.
    """
    names = [*runs]
    for index, (name, run) in enumerate(runs.items()):
        state.running, state.so_far, state.waiting = name, "", names[index + 1 :]

        def report(done: int, total: int, name: str = name) -> None:
            state.so_far = f"{done} of {counted(total, 'case')} checked"
            if progress is not None:
                progress(name, done, total)

        try:
            with limit():
                state.reports.append(run(report))
        except GemmlabError as error:
            state.errors[name] = error
    return state.result()
