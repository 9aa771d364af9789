"""`gemmlab profile`: what Nsight Compute says of kernels and of the library beside them, and what to try next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gemmlab.cli.answer import print_json
from gemmlab.cli.check_cmd import parse_config
from gemmlab.cli.own_file import ArgsFlag, GridFlag, KernelFlag, RequireFlag, SmemFlag, own_flags
from gemmlab.core.errors import DeviceError, ProfilerError, UsageError, WrongResultError
from gemmlab.devices.select import open_device

if TYPE_CHECKING:
    from gemmlab.core.records import Record
    from gemmlab.devices.device import Device
    from gemmlab.explain.findings import Finding
    from gemmlab.measure.profile import Profile, Profiles
    from gemmlab.ops.op import Op

WHOLE = 3
"""Up to so many kernels are shown one by one."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """What to profile."""

    names: Sequence[str]
    op: Op
    sizes: str
    config: Mapping[str, int]
    flags: Mapping[str, Any]
    baseline: bool
    ncu: str


def profile(
    kernels: Annotated[
        list[str] | None, typer.Argument(metavar="[KERNEL]...", help="GPU kernels or .cu files. Default: the ladder.")
    ] = None,
    op: Annotated[str | None, typer.Option(help="The operation. Default: of what is named, else gemm.")] = None,
    sizes: Annotated[
        str | None, typer.Option(help="256, 256,512 or MxNxK. Default: 2048 on a GPU, 256 without; of sums 2^26, 2^16.")
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
        str | None, typer.Option(metavar="FILE|h200", help="Show a record, or the one of an H200 that comes with it.")
    ] = None,
    stalls: Annotated[bool, typer.Option("--stalls", help="Explain every stall reason, and profile nothing.")] = False,
    function: KernelFlag = None,
    grid: GridFlag = None,
    threads: Annotated[str | None, typer.Option(help="Of a .cu file: its block, as '32, 32'.")] = None,
    args: ArgsFlag = None,
    smem_bytes: SmemFlag = None,
    require: RequireFlag = None,
    ncu: Annotated[str, typer.Option(help="Nsight Compute's command line.")] = "ncu",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    save: Annotated[Path | None, typer.Option(help="Write the record to this file.")] = None,
) -> None:
    """Profile kernels beside the library's own: stall reasons with what to try, pipes, caches, opcodes.

    Without Nsight Compute or a GPU the emulator counts what it can. Ends with 1 when a result is wrong there.
    """
    names = kernels or []
    if stalls:
        _explain_stalls(as_json=as_json)
        return
    flags = own_flags(
        names, kernel=function, grid=grid, threads=threads, args=args, smem_bytes=smem_bytes, require=require
    )
    if load is not None:
        if save is not None or config or flags:
            raise UsageError("--load shows what was measured; it goes with kernels and --sizes alone")
        shown = _chosen(_loaded(load), names, sizes, baseline=baseline)
        _show(shown, as_json=as_json, whole=0 < len(names) <= WHOLE)
        return
    if save is not None and not save.resolve().parent.is_dir():
        raise UsageError(f"--save {save}: no folder {save.parent}")
    _measured(_asked(names, op, sizes, config, flags, ncu, baseline=baseline), device, save, as_json=as_json)


def _asked(
    names: Sequence[str], op: str | None, sizes: str | None, config: list[str] | None, flags: Mapping[str, Any],
    ncu: str, *, baseline: bool,
) -> _Asked:  # fmt: skip
    from gemmlab.kernels.catalog import ladder
    from gemmlab.measure.own_kernel import kernel_named, operation_of
    from gemmlab.ops.catalog import find_op

    if config and not names:
        raise UsageError("--config: name the kernel it is for")
    operation = find_op(op or operation_of(names, flags))
    for name in names:
        kernel = kernel_named(name, flags)
        if (kernel.op, kernel.device) != (operation.name, "cuda"):
            raise UsageError(f"{name} is a {kernel.op} kernel for {kernel.device}, not {operation.name} for a GPU")
    every = names or [kernel.id for kernel in ladder(operation.name, "cuda")]
    return _Asked(every, operation, sizes or "", parse_config(config or []), flags, baseline, ncu)


def _measured(asked: _Asked, device: str | None, save: Path | None, *, as_json: bool) -> None:
    from gemmlab.core.records import save_record
    from gemmlab.measure.profiles import from_record

    try:
        record = _profiled(asked, open_device(device or "cuda"))
    except (DeviceError, ProfilerError) as error:
        if device is not None:
            raise
        record = _profiled(asked, open_device("emulated"))
        record = replace(record, notes=(f"{error}; so this was counted on {record.device['id']}", *record.notes))
    found = from_record(record)
    if not any(one.kernels for one in found.profiles if not one.is_library):
        why = [f"{one.name} at {one.size}: {' '.join(one.notes)}" for one in found.profiles]
        raise UsageError(f"nothing could be run: {'; '.join(why)}")
    if save is not None:
        save_record(record, save)
    _show(found, as_json=as_json, whole=len(asked.names) <= WHOLE)
    if wrong := [f"{r.contestant} at {r.label}: {'; '.join(r.notes)}" for r in record.results if r.verified is False]:
        raise WrongResultError("\n".join(wrong))


def _profiled(asked: _Asked, device: Device) -> Record:
    from gemmlab.measure.families import family_of

    usual = family_of(device.id, asked.op.name).profile_sizes
    if not usual:
        raise UsageError(f"--device {device.id}: profiled are GPU kernels, on cuda or emulated devices")
    problems = asked.op.parse_sizes(asked.sizes or usual)
    if family_of(device.id).timed:
        from gemmlab.measure.profiling import Plan, profile_on_gpu

        return profile_on_gpu(
            Plan(asked.op, device, problems, asked.names, asked.config, asked.flags, asked.baseline, asked.ncu)
        )
    from gemmlab.cli.counts import count
    from gemmlab.measure.counting import Count
    from gemmlab.measure.own_kernel import kernel_named

    chosen = [kernel_named(name, asked.flags) for name in asked.names]
    record = count(Count(asked.op, device, chosen, problems, config=asked.config))
    notes = ["no baseline: a library's kernels do not run on the emulator"] if asked.baseline else []
    return replace(record, kind="profile", notes=(*record.notes, *notes))


def _loaded(name: str) -> Profiles:
    """The record in a file, or that of a GPU that travels with the package."""
    from gemmlab.measure.profiles import load_profiles
    from gemmlab.measure.recorded import recorded_profile

    return load_profiles(recorded_profile(name) or name)


def _chosen(profiles: Profiles, names: Sequence[str], sizes: str | None, *, baseline: bool) -> Profiles:
    """What was asked for, and the libraries at the same sizes."""
    from gemmlab.cli.profile_tables import printable
    from gemmlab.ops.catalog import find_op

    wanted = [Path(name).stem if name.endswith(".cu") else name for name in names]
    known = dict.fromkeys(one.name for one in profiles.profiles)
    if missing := [name for name in wanted if name not in known]:
        raise UsageError(f"the record has no {missing[0]}; it has {printable(', '.join(known))}")
    labels = [problem.label for problem in find_op(profiles.op).parse_sizes(sizes)] if sizes is not None else []
    there = dict.fromkeys(one.size for one in profiles.profiles)
    if missing := [label for label in labels if label not in there]:
        raise UsageError(f"the record has nothing at {missing[0]}; it has {printable(', '.join(there))}")
    kept = [
        one for one in profiles.profiles
        if (one.size in labels or not labels)
        and (one.name in wanted or not wanted or one.is_library)
        and (baseline or not one.is_library or one.name in wanted)
    ]  # fmt: skip
    return replace(profiles, profiles=tuple(kept))


def _show(profiles: Profiles, *, as_json: bool, whole: bool) -> None:
    from gemmlab.cli.console import table_console
    from gemmlab.cli.profile_tables import ProfilePage

    ours = [one for one in profiles.profiles if not one.is_library] or list(profiles.profiles)
    if as_json:
        print_json({
            **{name: getattr(profiles, name) for name in ("op", "device", "arch", "profiler", "time_utc", "notes")},
            "profiles": [_told(profiles, one) for one in profiles.profiles],
        })  # fmt: skip
        return
    page = ProfilePage(table_console())
    page.notes(profiles)
    if not whole:
        page.all(profiles)
        return
    for one in ours:
        page.one(profiles, one, _findings(profiles, one))


def _told(profiles: Profiles, one: Profile) -> dict[str, Any]:
    from gemmlab.explain.stalls import waiting

    library = profiles.baseline(one) if not one.is_library else None
    states = [{"stall": state.stall.key, **{name: getattr(state, name) for name in _MEASURED}}
              for state in waiting(one)]  # fmt: skip
    return {
        **asdict(one), "baseline": None if library is None else library.contestant, "stalls": states,
        "findings": [asdict(finding) for finding in _findings(profiles, one)],
    }  # fmt: skip


_MEASURED = ("cycles", "share", "samples", "not_issued", "cost")


def _findings(profiles: Profiles, one: Profile) -> tuple[Finding, ...]:
    from gemmlab.explain.stalls import stall_findings
    from gemmlab.kernels.catalog import all_kernels, ladder

    kernel = next((kernel for kernel in all_kernels() if kernel.id == one.name), None)
    return stall_findings(one, kernel, ladder(profiles.op, "cuda"))


def _explain_stalls(*, as_json: bool) -> None:
    from gemmlab.cli.console import table_console
    from gemmlab.cli.profile_tables import ProfilePage
    from gemmlab.explain.stall_reasons import STALLS

    if as_json:
        print_json({"stalls": [
            {**asdict(stall), "name": stall.name, "metric": stall.metric, "not_issued": stall.not_issued,
             "cycles": stall.cycles}
            for stall in STALLS
        ]})  # fmt: skip
    else:
        ProfilePage(table_console()).stalls()


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("profile")(profile)
