"""`gemmlab profile`: profile kernels and a library with Nsight Compute, and say what to try next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gemmlab.cli.help_examples import kernel_names
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
)
from gemmlab.cli.rungs_here import rungs_here
from gemmlab.cli.timeout import DEFAULT_S, TimeoutFlag, error_answer, limited
from gemmlab.core.errors import DeviceError, ProfilerError, UsageError, WrongResultError
from gemmlab.devices.select import open_device

if TYPE_CHECKING:
    from gemmlab.core.records import Record
    from gemmlab.devices.device import Device
    from gemmlab.kernels.by_name import NamedKernel
    from gemmlab.ops.op import Op

WHOLE = 3
"""Most kernels that are shown one by one; more are shown in a table."""


@dataclass(frozen=True, slots=True)
class _Request:
    """The parsed command line, with kernels loaded."""

    kernels: Sequence[NamedKernel]
    """Empty for the ladder."""
    op: Op
    sizes: str
    config: Mapping[str, int]
    baseline: bool
    ncu: str


def profile(
    kernels: Annotated[
        list[str] | None,
        typer.Argument(
            autocompletion=kernel_names, metavar="[KERNEL]...", help="GPU kernels or .cu files. Default: the ladder."
        ),
    ] = None,
    op: Annotated[str | None, typer.Option(help="Operation. Default: that of the kernels named, else gemm.")] = None,
    sizes: Annotated[
        str | None,
        typer.Option(help="256, 256,512 or MxNxK. Default: 2048 on a GPU, 256 without; for sums 2^26, 2^16."),
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
    threads: Annotated[str | None, typer.Option(help="Block of a .cu file's kernel, as '32, 32'.")] = None,
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
    save: Annotated[Path | None, typer.Option(help="Write the record to this file.")] = None,
) -> None:
    """Profile kernels beside the library's own: stall reasons with what to try, pipes, caches, opcodes.

    Without Nsight Compute or a GPU the emulator counts what it can. Ends with 1 when a result is wrong there, and when
    the time is over.
    """
    from gemmlab.cli.profile_answer import chosen, explain_stalls, loaded, show

    names = kernels or []
    if stalls:
        explain_stalls(as_json=as_json)
        return
    flags = own_flags(
        names, kernel=function, grid=grid, threads=threads, args=args, smem_bytes=smem_bytes, require=require,
        options=compile_flags(include, define, option), facts=facts,
    )  # fmt: skip
    if load is not None:
        if save is not None or config or flags:
            raise UsageError("--load shows a record; of the other options it takes kernels and --sizes alone")
        shown = chosen(loaded(load), names, sizes, baseline=baseline)
        show(shown, as_json=as_json, whole=0 < len(names) <= WHOLE, every_size=sizes is not None)
        return
    if save is not None and not save.resolve().parent.is_dir():
        raise UsageError(f"--save {save}: no folder {save.parent}")
    request = _request(names, op, sizes, config, flags, ncu, baseline=baseline)
    with limited(timeout, error_answer(as_json=as_json)):
        record = _measured(request, device)
    _show(request, record, save, as_json=as_json)


def _request(
    names: Sequence[str], op: str | None, sizes: str | None, config: list[str] | None, flags: Mapping[str, Any],
    ncu: str, *, baseline: bool,
) -> _Request:  # fmt: skip
    from gemmlab.kernels.by_name import named_kernels
    from gemmlab.ops.catalog import find_op
    from gemmlab.timing.families import operation_of

    if config and not names:
        raise UsageError("--config: name the kernel it is for")
    found = named_kernels(names, flags)
    operation = find_op(op or operation_of(names, found))
    for name in names:
        kernel = found[name].kernel
        if (kernel.op, kernel.device) != (operation.name, "cuda"):
            raise UsageError(f"{name} is a {kernel.op} kernel for {kernel.device}, not {operation.name} for a GPU")
    return _Request([found[name] for name in names], operation, sizes or "", parse_config(config or []), baseline, ncu)


def _measured(request: _Request, device: str | None) -> Record:
    try:
        return _profiled(request, open_device(device or "cuda"))
    except (DeviceError, ProfilerError) as error:
        if device is not None:
            raise
        record = _profiled(request, open_device("emulated"))
        return replace(record, notes=(f"{error}; so this was counted on {record.device['id']}", *record.notes))


def _show(request: _Request, record: Record, save: Path | None, *, as_json: bool) -> None:
    from gemmlab.cli.profile_answer import show
    from gemmlab.core.records import save_record
    from gemmlab.observe.profile_reader import from_record

    found = from_record(record)
    if not any(one.kernels for one in found.profiles if not one.is_library):
        why = [f"{one.name} at {one.size}: {' '.join(one.notes)}" for one in found.profiles]
        raise UsageError(f"nothing could be run: {'; '.join(why)}")
    if save is not None:
        save_record(record, save)
    show(found, as_json=as_json, whole=0 < len(request.kernels) <= WHOLE)
    if wrong := [f"{r.contestant} at {r.label}: {'; '.join(r.notes)}" for r in record.results if r.verified is False]:
        raise WrongResultError("\n".join(wrong))


def _profiled(request: _Request, device: Device) -> Record:
    from gemmlab.kernels.by_name import NamedKernel
    from gemmlab.timing.families import family_of

    usual = family_of(device.family, request.op.name).profile_sizes
    if not usual:
        raise UsageError(f"--device {device.id}: only GPU kernels are profiled, on cuda or emulated devices")
    problems = request.op.parse_sizes(request.sizes or usual)
    kernels = request.kernels or [NamedKernel(kernel) for kernel in rungs_here(request.op.name, device)]
    if family_of(device.family).timed:
        from gemmlab.kernels.fitting import same_for_all
        from gemmlab.observe.profile_recorder import Plan, profile_on_gpu

        same, notes = same_for_all([one.kernel for one in kernels], request.op, problems)
        plan = Plan(request.op, device, same, kernels, request.config, request.baseline, request.ncu)
        record = profile_on_gpu(plan)
        return replace(record, notes=(*notes, *record.notes))
    from gemmlab.cli.counts import count
    from gemmlab.observe.counting import Count

    record = count(Count(request.op, device, [one.kernel for one in kernels], problems, config=request.config))
    notes = ["no baseline: a library's kernels do not run on the emulator"] if request.baseline else []
    return replace(record, kind="profile", notes=(*record.notes, *notes))


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("profile")(profile)
