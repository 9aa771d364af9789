"""`gemmlab compile`: compile GPU kernels, which needs no GPU, and cache the code for machines without a compiler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gemmlab.cli.answer import print_json
from gemmlab.cli.compiled_code import make_room
from gemmlab.cli.help_examples import kernel_names
from gemmlab.cli.option_values import parse_config, require_place
from gemmlab.cli.own_file import DefineFlag, IncludeFlag, OptionFlag, own_flags
from gemmlab.core.errors import GemmlabError, UsageError
from gemmlab.core.hardware import usable_cpus
from gemmlab.core.words import assignments
from gemmlab.devices.select import DEFAULT_ARCH
from gemmlab.instruments.compile_flags import compile_flags
from gemmlab.ops.gemm_problem import LAYOUTS

if TYPE_CHECKING:
    from gemmlab.precompile.cubins import Compiled, Job

_NAMED = 3
"""The most kernels that the message names when `--out` needs one kernel and there are more."""


def compile_kernels(
    kernels: Annotated[
        list[str] | None,
        typer.Argument(
            autocompletion=kernel_names,
            metavar="[KERNEL]...",
            help="Kernels by id, or .cu files. Default: every CUDA kernel.",
        ),
    ] = None,
    arch: Annotated[str, typer.Option(help="Architectures: sm_90a or sm_80,sm_90.")] = DEFAULT_ARCH,
    config: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="A kernel parameter; repeatable.")
    ] = None,
    instance: Annotated[
        str,
        typer.Option(
            "--kernel", "--instance", help="The function in a .cu file; of a template an instance: 'tile<32>'."
        ),
    ] = "",
    include: IncludeFlag = None,
    define: DefineFlag = None,
    option: OptionFlag = None,
    every: Annotated[
        bool, typer.Option("--all-configs", help="Every configuration of the tuning space, not only the default.")
    ] = False,
    layouts: Annotated[str, typer.Option(help="Operand layouts, as nn,tn. Default: all that a kernel reads.")] = "",
    processes: Annotated[
        int | None, typer.Option(min=1, help="Compilers that run at once. Default: one per core.")
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(help="Write registers, spills, shared memory and occupancy of each kernel to this file."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE.cubin", help="Write the machine code of the one kernel, or its PTX (FILE.ptx)."),
    ] = None,
    prune: Annotated[
        bool, typer.Option("--prune", help="Compile nothing: shrink the cache of compiled code to its limit.")
    ] = False,
    clear: Annotated[bool, typer.Option("--clear", help="Compile nothing: empty the cache of compiled code.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compile kernels into the cache, for machines with the same cache and no compiler.

    With --out, also write one kernel's cubin, which check, sass and explain read and any CUDA program can load.

    Exits with 2 and the compiler's message if a kernel does not compile.
    """
    from gemmlab.kernels.by_name import is_own
    from gemmlab.precompile import cubins as precompile
    from gemmlab.toolchain.cache import cache_dir
    from gemmlab.toolchain.nvrtc import check_architecture, compiler

    names = kernels or []
    if prune or clear:
        if names or (prune and clear):
            raise UsageError("--prune and --clear take no other options: they apply to all compiled code")
        make_room(everything=clear, as_json=as_json)
        return
    archs = list(dict.fromkeys(part.strip() for part in arch.split(",")))
    for target in archs:
        check_architecture(target, "--arch")
    overrides = parse_config(config or [])
    if overrides and not names:
        raise UsageError("--config: name the kernel that it configures")
    if every and (overrides or instance):
        raise UsageError("--all-configs compiles every configuration; --config and --kernel choose one")
    options = own_flags(names, options=compile_flags(include, define, option)).get("options", [])
    if instance and [is_own(name) for name in names] != [True]:
        raise UsageError("--kernel: name the one .cu file that it is in")
    if save is not None and (files := [name for name in names if is_own(name)]):
        raise UsageError(f"--save holds only kernels of gemmlab, and {files[0]} is a file; --json prints its figures")
    if save is not None:
        require_place("--save", save)
    chosen = [part.strip() for part in layouts.split(",") if part.strip()]
    if unknown := [part for part in chosen if part not in LAYOUTS]:
        raise UsageError(f"--layouts: no layout {unknown[0]!r}; there are {', '.join(LAYOUTS)}")
    planned, skipped = precompile.jobs(
        names, archs, overrides, instance=instance, every=every, layouts=chosen, options=options
    )
    if out is not None:
        _require_one(out, planned, chosen)
    rows, errors = _run(planned, processes or len(usable_cpus()))
    if save is not None:
        from gemmlab.precompile.sweep import save_sweep

        save_sweep(rows, errors, save)
    if out is not None and not errors:
        precompile.write_code(planned[0].program, out)
    if as_json:
        print_json({
            "compiler": compiler(), "cache": str(cache_dir() or ""), "kernels": [row.to_json() for row in rows],
            "skipped": skipped, "errors": {name: str(error) for name, error in errors.items()},
        })  # fmt: skip
    else:
        if save is None or errors:
            _print([] if save else rows, skipped, errors)
        if save is not None:
            typer.echo(f"{len(rows)} compiled, {sum(row.spill_stores > 0 for row in rows)} of them spill: {save}")
        if out is not None and not errors:
            typer.echo(f"\n{out}: {planned[0].program.entry} for {planned[0].program.target}")
        outcome = f"kept in {folder}" if (folder := cache_dir()) else "not cached: there is no home folder"
        typer.echo(f"\n{compiler()}; {outcome}")
    if errors:
        raise typer.Exit(2)


def _require_one(out: Path, jobs: Sequence[Job], chosen: Sequence[str]) -> None:
    programs = [job.program for job in jobs]
    if out.suffix not in (".cubin", ".ptx"):
        raise UsageError(f"--out {out}: a .cubin for machine code, a .ptx for PTX")
    if not out.resolve().parent.is_dir():
        raise UsageError(f"--out {out}: no folder {out.parent}")
    if len(programs) != 1:
        found = ", ".join(f"{program.entry} for {program.target}" for program in programs[:_NAMED])
        more = f" and {len(programs) - _NAMED} more" if len(programs) > _NAMED else ""
        raise UsageError(
            f"--out {out}: holds one kernel, and these are {len(programs)}: {found}{more}; "
            f"name one, with --kernel, --config, --layouts{_layouts(jobs, chosen)} or --arch"
        )


def _layouts(jobs: Sequence[Job], chosen: Sequence[str]) -> str:
    """Return ` (one of nn, tn)`, the layouts for which the jobs compile; empty if there are fewer than two."""
    from gemmlab.kernels.catalog import find_kernel

    read = {layout for job in jobs if job.origin for layout in find_kernel(job.origin).layouts}
    found = [layout for layout in LAYOUTS if layout in read and (not chosen or layout in chosen)]
    return f" (one of {', '.join(found)})" if len(found) > 1 else ""


def _run(planned: list[Job], processes: int) -> tuple[list[Compiled], dict[str, GemmlabError]]:
    """Compile the jobs; return the compiled kernels in the order of the jobs, and errors by `ENTRY for TARGET`."""
    from rich.progress import MofNCompleteColumn, Progress

    from gemmlab.cli.console import progress_console
    from gemmlab.precompile.cubins import run, run_all

    found: dict[str, Compiled | GemmlabError] = {}
    titles = [f"{job.program.entry} for {job.program.target}" for job in planned]
    with Progress(
        *Progress.get_default_columns(), MofNCompleteColumn(), console=progress_console(), transient=True
    ) as bar:
        task = bar.add_task("compiling", total=len(planned))
        for job, outcome in run_all(planned, processes, run):
            title = f"{job.program.entry} for {job.program.target}"
            found[title] = outcome
            bar.update(task, description=title, advance=1)
    outcomes = [(title, found[title]) for title in titles]
    rows = [outcome for _, outcome in outcomes if not isinstance(outcome, GemmlabError)]
    return rows, {title: outcome for title, outcome in outcomes if isinstance(outcome, GemmlabError)}


def _print(rows: list[Compiled], skipped: list[str], errors: Mapping[str, GemmlabError]) -> None:
    from rich.table import Table
    from rich.text import Text

    from gemmlab.cli.console import table_console

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("kernel", "configuration", "arch", "registers", "shared", "spills", "code", "ms", "cached"):
        table.add_column(heading, justify="left" if heading in ("kernel", "configuration", "arch") else "right")
    for row in rows:
        config = assignments(row.config) or row.instance
        sizes = (row.registers, row.static_smem_bytes, row.spill_stores + row.spill_loads, row.code_bytes)
        cells = (row.kernel, config, row.arch, *map(str, sizes), f"{row.time_ms:.0f}", "yes" if row.cached else "no")
        table.add_row(*map(Text, cells))
    if rows:
        table_console().print(table)
        typer.echo("\nShared memory and code in bytes; spills in bytes that a thread stores and loads.")
    for reason in skipped:
        typer.echo(f"left out: {reason}")
    for error in errors.values():
        typer.echo(f"\n{error}")


def register(app: typer.Typer) -> None:
    app.command("compile")(compile_kernels)
