"""`gemmlab profile`: profile kernels and a peer library with Nsight Compute, and say what to try next."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gemmlab.cli.answer import CsvFlag, Form, answer_form
from gemmlab.cli.help_examples import kernel_names
from gemmlab.cli.option_values import parse_config, require_place
from gemmlab.cli.own_file import (
    ArgsFlag,
    BlockFlag,
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
)
from gemmlab.cli.timeout import DEFAULT_S, TimeoutFlag, error_answer, limited
from gemmlab.core.errors import UsageError, WrongResultError
from gemmlab.instruments.compile_flags import compile_flags

WHOLE = 3
"""The most named kernels that have a page each; for more, and for none, there is a table."""


def profile(
    kernels: Annotated[
        list[str] | None,
        typer.Argument(
            autocompletion=kernel_names, metavar="[KERNEL]...", help="GPU kernels or .cu files. Default: the ladder."
        ),
    ] = None,
    op: OpFlag = None,
    sizes: Annotated[
        str | None,
        typer.Option(help="256, 256,512 or MxNxK. Default: 2048 on a GPU, 256 without one; for sums 2^26, 2^16."),
    ] = None,
    config: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="A kernel parameter; repeatable.")
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(help="cuda[:N], under Nsight Compute, or emulated[:sm_XX]. Default: the GPU, else emulated."),
    ] = None,
    baseline: Annotated[bool, typer.Option(help="Profile cuBLAS's kernel too; for sums CUB's or torch's.")] = True,
    load: Annotated[
        str | None, typer.Option(metavar="FILE|h200", help="Show this record; h200: the one that comes with gemmlab.")
    ] = None,
    stalls: Annotated[bool, typer.Option("--stalls", help="Explain every stall reason, and profile nothing.")] = False,
    function: KernelFlag = None,
    grid: GridFlag = None,
    threads: BlockFlag = None,
    args: ArgsFlag = None,
    smem_bytes: SmemFlag = None,
    facts: FactsFlag = None,
    include: IncludeFlag = None,
    define: DefineFlag = None,
    option: OptionFlag = None,
    require: RequireFlag = None,
    ncu: Annotated[str, typer.Option(help="Nsight Compute's command line.")] = "ncu",
    timeout: TimeoutFlag = DEFAULT_S,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    as_csv: CsvFlag = False,
    save: Annotated[Path | None, typer.Option(help="Write the record to this file.")] = None,
) -> None:
    """Profile kernels beside a peer library's: stall reasons with what to try, pipes, caches, opcodes.

    Without Nsight Compute or a GPU, the emulator counts. Exits with 1 if a result on the emulator is wrong, and if the
    time limit is reached.
    """
    from gemmlab.cli.counts import live_counts
    from gemmlab.cli.profile_answer import explain_stalls, show
    from gemmlab.core.records import save_record
    from gemmlab.instruments.profiling import profile_names, recorded

    form, names = answer_form(as_json=as_json, as_csv=as_csv), kernels or []
    if stalls:
        if form is Form.CSV:
            raise UsageError("--csv: --stalls explains in words; --json has the same as values")
        explain_stalls(as_json=as_json)
        return
    flags = own_flags(
        names, kernel=function, grid=grid, threads=threads, args=args, smem_bytes=smem_bytes, require=require,
        options=compile_flags(include, define, option), facts=facts,
    )  # fmt: skip
    if load is not None:
        if save is not None or config or flags:
            raise UsageError("--load shows a record; it can be combined only with kernels and --sizes")
        result = recorded(load, names, sizes, baseline=baseline)
        show(result, form, whole=0 < len(names) <= WHOLE, every_size=sizes is not None)
        return
    if save is not None:
        require_place("--save", save)
    with limited(timeout, error_answer(as_json=as_json)), live_counts() as progress:
        result = profile_names(
            names, op=op, sizes=sizes, config=parse_config(config or []), device=device, baseline=baseline, facts=flags,
            ncu=ncu, progress=progress,
        )  # fmt: skip
    if save is not None and result.record is not None:
        save_record(result.record, save)
    show(result, form, whole=0 < len(names) <= WHOLE)
    if result.wrong:
        raise WrongResultError("\n".join(result.wrong))


def register(app: typer.Typer) -> None:
    """Add the verb to the application."""
    app.command("profile")(profile)
