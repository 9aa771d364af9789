"""`gemmlab.profile`: profile kernels and a library with Nsight Compute, or count them on the emulator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gemmlab.core.errors import DeviceError, ProfilerError, UsageError
from gemmlab.core.records import Record
from gemmlab.core.time_limit import require_seconds, time_limit
from gemmlab.devices.device import Device
from gemmlab.devices.select import open_device
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
from gemmlab.instruments.defaults import rungs_here
from gemmlab.instruments.profile_result import ProfileResult
from gemmlab.instruments.profile_selection import chosen, loaded
from gemmlab.kernels.by_name import NamedKernel, named_kernels
from gemmlab.kernels.fitting import same_for_all
from gemmlab.observe.counting import Count, Progress, count_kernels
from gemmlab.observe.profile import NO_BASELINE
from gemmlab.observe.profile_reader import from_record
from gemmlab.observe.profile_recorder import Plan, profile_on_gpu
from gemmlab.ops.catalog import find_op
from gemmlab.ops.op import Op
from gemmlab.timing.families import family_of, operation_of


@dataclass(frozen=True, slots=True)
class _Request:
    """The arguments of a call of `profile`, with kernels loaded instead of named."""

    kernels: Sequence[NamedKernel]
    """Kernels to profile; empty stands for the ladder of the operation."""
    op: Op
    sizes: str
    config: Mapping[str, int]
    baseline: bool
    ncu: str
    progress: Progress


def profile(
    *kernels: KernelName,
    op: OpName | None = None,
    sizes: Sizes | None = None,
    config: Mapping[str, int] | None = None,
    device: str | None = None,
    baseline: bool = True,
    load: str | None = None,
    facts: Facts | None = None,
    ncu: str = "ncu",
    timeout_s: float | None = None,
    progress: Progress | None = None,
) -> ProfileResult:
    """Profile kernels beside the vendor library's kernel: stall reasons with advice, pipes, caches, opcodes.

    `kernels` are ids of GPU kernels, paths of `.cu` files or CUDA C++ as text; without any, the ladder of `op`. `sizes`
    are 2048, (M, N, K), a list of such, or the text of `--sizes`; `config` sets parameters, `facts` are as for `check`.
    `device` is `"cuda[:N]"`, under Nsight Compute (`ncu` is its command), or `"emulated[:sm_XX]"`; by default the GPU,
    and without a GPU or Nsight Compute the emulator, which counts. With `baseline` cuBLAS's kernel is profiled on the
    GPU, too; for sums CUB's or torch's. `load` names a record to show instead of a run: a file's path, or `"h200"`,
    which comes with gemmlab. `timeout_s` limits the whole call, in seconds. `progress(text, done, total)` is called
    while the emulator counts.

    A wrong result raises nothing: it is in `wrong` of the result. Raises `ArgumentTypeError`, `UsageError` (an unknown
    kernel, size or parameter; nothing that could be run), `DeviceError`, `RecordError`, `MemoryError`,
    `TimeLimitError`; with `device`, `ProfilerError` if Nsight Compute is missing or lacks permission; `PeerError` if it
    fails.
    """
    require_seconds("profile: timeout_s", timeout_s)
    names = kernel_names(kernels)
    stated, text = stated_facts(facts, names), size_text(sizes)
    if load is not None:
        if config or stated:
            raise UsageError("profile: load shows a record; it can be combined only with kernels and sizes")
        return recorded(load, names, text, baseline=baseline)
    with time_limit(timeout_s):
        return profile_names(
            names, op=op, sizes=text, config=config or {}, device=device, baseline=baseline, facts=stated, ncu=ncu,
            progress=progress,
        )  # fmt: skip


def recorded(name: str, kernels: Sequence[str], sizes: str | None, *, baseline: bool) -> ProfileResult:
    """Return the profiles of kernels and sizes from the record `name`: a file's path, or a GPU's name.

    No kernels or no sizes stand for all. Raises `UsageError`, `RecordError`.
    """
    return ProfileResult(chosen(loaded(name), kernels, sizes, baseline=baseline))


def profile_names(
    names: Sequence[str], *, op: OpName | None, sizes: str | None, config: Mapping[str, int], device: str | None,
    baseline: bool, facts: Mapping[str, Any], ncu: str, progress: Progress | None,
) -> ProfileResult:  # fmt: skip
    """Profile kernels, or count them on an emulated device; arguments are as on the command line.

    Raises as `profile` does.
    """
    if config and not names:
        raise UsageError("--config: name the kernel that it configures")
    requested, facts = operation_argument(op, names, facts)
    found = named_kernels(names, facts)
    operation = find_op(operation_of(names, found, requested))
    for name in names:
        kernel = found[name].kernel
        if (kernel.op, kernel.device) != (operation.name, "cuda"):
            raise UsageError(f"{name} is a {kernel.op} kernel for {kernel.device}, not {operation.name} for a GPU")
    report = progress or (lambda _text, _done, _total: None)
    request = _Request([found[name] for name in names], operation, sizes or "", config, baseline, ncu, report)
    record = _measured(request, device)
    result = ProfileResult(from_record(record), record)
    if not any(one.kernels for one in result.profiles.profiles if not one.is_library):
        why = [f"{one.name} at {one.size}: {' '.join(one.notes)}" for one in result.profiles.profiles]
        raise UsageError(f"nothing could be run: {'; '.join(why)}")
    return result


def _measured(request: _Request, device: str | None) -> Record:
    try:
        return _profiled(request, open_device(device or "cuda"))
    except (DeviceError, ProfilerError) as error:
        if device is not None:
            raise
        record = _profiled(request, open_device("emulated"))
        return replace(record, notes=(f"{error}; so this was counted on {record.device['id']}", *record.notes))


def _profiled(request: _Request, device: Device) -> Record:
    usual = family_of(device.family, request.op.name).profile_sizes
    if not usual:
        raise UsageError(f"--device {device.id}: only GPU kernels are profiled, on cuda or emulated devices")
    problems = request.op.parse_sizes(request.sizes or usual)
    kernels = request.kernels or [NamedKernel(kernel) for kernel in rungs_here(request.op.name, device)]
    if family_of(device.family).timed:
        same, notes = same_for_all([one.kernel for one in kernels], request.op, problems)
        plan = Plan(request.op, device, same, kernels, request.config, request.baseline, request.ncu)
        record = profile_on_gpu(plan)
        return replace(record, notes=(*notes, *record.notes))
    count = Count(request.op, device, [one.kernel for one in kernels], problems, config=request.config)
    record = count_kernels(count, request.progress)
    notes = [f"{NO_BASELINE}: a library's kernels do not run on the emulator"] if request.baseline else []
    return replace(record, kind="profile", notes=(*record.notes, *notes))
