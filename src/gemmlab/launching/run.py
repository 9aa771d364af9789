"""One launch of any kernel on any device: build, copy the arrays to the device, run, copy them back."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, SupportsIndex

import numpy as np

from gemmlab.core.counters import Observation
from gemmlab.core.errors import (
    ArgumentTypeError,
    CompileError,
    DeviceError,
    NoCompilerError,
    TimeLimitError,
    UsageError,
)
from gemmlab.core.hazard import Hazard
from gemmlab.core.hazard_cures import with_cures
from gemmlab.core.hazard_source import source_text, with_source
from gemmlab.core.program import Artifact, Launch
from gemmlab.core.stray_reads import without_stray
from gemmlab.core.time_limit import require_seconds, time_limit
from gemmlab.core.words import shown
from gemmlab.devices.device import CountingDevice, Device, own
from gemmlab.devices.device_name import DeviceName, parse_device
from gemmlab.devices.select import open_device
from gemmlab.launching.launched import Array, Launched
from gemmlab.launching.parameters import Bound, Parameter, in_order, parameters
from gemmlab.launching.source import PtxText, ReadyCubin, Source, encodable, read_source
from gemmlab.sass.source_places import with_call_sites
from gemmlab.toolchain.constant_values import with_constants
from gemmlab.toolchain.cubin import read_cubin

Extents = SupportsIndex | Sequence[SupportsIndex]


def launch(
    source: Source,
    kernel: str,
    grid: Extents,
    threads: Extents,
    args: Sequence[Any] | Mapping[str, Any],
    *,
    device: str | Device | None = None,
    smem_bytes: SupportsIndex = 0,
    arch: str | None = None,
    options: Sequence[str] = (),
    timeout_s: float | None = None,
    races: bool = False,
    cluster: Extents | None = None,
    wide_clusters: bool = False,
    cooperative: bool = False,
    constants: Mapping[str, Any] | None = None,
) -> Launched:
    """Run `kernel` once and wait for it.

    `source` is CUDA C++ text, a path to a `.cu`, `.cuh`, `.ptx` or `.cubin` file, a cubin's bytes, or the id of a
    kernel that comes with gemmlab (`"block_tile"`); `kernel` is the function's name, with template arguments if it has
    any (`"tile<32>"`; the defaults for gemmlab's own). `grid` (in blocks) and `threads` (of a block) are one to three
    extents, x first; `smem_bytes` is the dynamic shared memory of a block.

    `args` are the kernel's arguments in order, or a dictionary by their names (of a cubin, which has no names, in their
    order). Arrays (NumPy, of any layout and the dtype that the parameter points to; on a GPU also torch, CuPy and
    others there) are passed as copies in C order, so that your arrays are never written to. The same array passed twice
    is the same memory, and `gemmlab.TensorMap(array, box)` is a tensor map over it. Scalars are NumPy scalars of the
    parameter's size and kind (float or not), or Python numbers, which get the parameter's type; None is a null pointer.
    `constants` are the values of `__constant__` variables by name, NumPy arrays or scalars of the variable's size.

    `device` is `"cuda[:N]"`, `"emulated[:sm_XX]"` or an open device; by default a GPU if there is one, else the
    emulator. `arch` compiles for that architecture (`"sm_90a"`), `options` go to the compiler. `timeout_s` limits the
    kernel's run in seconds, without compiling. After a timeout on a GPU this process cannot use that GPU any more.
    `cluster` is the extent of a cluster in blocks, if the kernel was not compiled for one (`__cluster_dims__`);
    `wide_clusters` allows more than 8 blocks in one. A `cooperative` launch has all blocks resident together, as
    `cooperative_groups::this_grid().sync()` requires, or is refused. With `races` the emulator also detects races in
    global memory (`docs/emulator.md`), which takes longer.

    Raises `ArgumentTypeError`, `UsageError` (a launch that does not fit the kernel or the architecture),
    `CompileError`, `DeviceError`, `MemoryError`, `TimeLimitError` that states the kernel's progress within `timeout_s`,
    and `WrongResultError` for a kernel that faulted on a GPU. On the emulator `hazards` of the result lists the
    kernel's errors.

    Several threads may launch at once. On the emulator each launch has its own memory, counters and hazards, even if
    all name one open device. Launches run in parallel: the interpreter lock is released meanwhile.
    """
    require_seconds("launch: timeout_s", timeout_s)
    code = read_source(source)
    if isinstance(options, str):
        raise ArgumentTypeError(f"launch: options is a str, not a list; pass [{options!a}]")
    for what, text in (("kernel", kernel), *(("an option", option) for option in options)):
        encodable(what, text)
    where = own(_where(device, arch or (code.cubin.arch if isinstance(code, ReadyCubin) else None)))
    if isinstance(code, PtxText):
        if options:
            raise UsageError(f"launch: {code.name} is PTX; it takes no options")
        code = code.assembled(arch or where.target({}))
    if isinstance(code, ReadyCubin):
        if options or arch not in (None, code.cubin.arch):
            raise UsageError(
                f"launch: {code.name} is machine code for {code.cubin.arch}; it takes no options and no other arch"
            )
        artifact = code.artifact(kernel, disassembled=isinstance(where, CountingDevice))
        signature = None
    else:
        try:
            target = arch or where.target({})
            artifact = where.build(code.program(code.named(kernel, target), target, options))
        except CompileError as error:
            hint = code.hint(kernel, options)
            if not hint or isinstance(error, NoCompilerError):
                raise
            raise CompileError(f"{hint}\n{error}") from error
        signature = code.signature(kernel, options)
        if arch not in (None, artifact.target):
            raise UsageError(f"launch: {where.id} runs code for {artifact.target}, not for {arch}")
    if constants:
        artifact = with_constants(artifact, {name: np.asarray(value) for name, value in constants.items()})
    function = read_cubin(artifact.code, artifact.kernel).functions[artifact.entry]
    request = Launch(
        (), _extents("grid", grid), _extents("threads", threads), _whole("smem_bytes", smem_bytes),
        cluster=None if cluster is None else _extents("cluster", cluster), wide_clusters=wide_clusters,
        cooperative=bool(cooperative),
    )  # fmt: skip
    ordered = in_order(artifact.kernel, args, function.params, signature)
    takes, texts = parameters(artifact.kernel, function.params, signature), code.texts(artifact.kernel)
    with time_limit(timeout_s):
        first = _run(where, artifact, request, takes, ordered, races=races)
        hazards, stray = _without_stray(
            first, lambda filling: _run(own(where), artifact, request, takes, ordered, filling=filling), texts
        )
    observation, outputs = first
    return Launched(
        outputs=_named(args, ordered, outputs),
        counters=None if observation is None else observation.counters,
        hazards=None if observation is None else _described(hazards, texts, artifact),
        device=where.id,
        artifact=artifact,
        request=request,
        stray=stray,
    )


Outcome = tuple[Observation | None, list[Array | None]]
"""The observation of a launch, if its device observes, and the arrays that the launch left, argument by argument."""


def _run(
    device: Device, artifact: Artifact, request: Launch, takes: Sequence[Parameter], values: Sequence[Any],
    *, races: bool = False, filling: int | None = None,
) -> Outcome:  # fmt: skip
    """Run once on copies of the arrays among `values`. `races` and `filling` are those of `CountingDevice.observe`."""
    loaded = device.load(artifact)
    bound = Bound(device, takes, values, artifact.kernel)
    try:
        call, observation = replace(request, args=tuple(bound.values)), None
        if isinstance(device, CountingDevice):
            observation = device.observe(loaded, call, races=races, filling=filling)
        else:
            device.launch(loaded, call)
        return observation, bound.outputs()
    finally:
        bound.free()


def _without_stray(
    first: Outcome, repeat: Callable[[int], Outcome], texts: Mapping[str, str]
) -> tuple[tuple[Hazard, ...], tuple[str, ...]]:
    """Return what `without_stray` returns for a launch. `repeat` runs it again with a byte in unwritten memory."""
    observation, outputs = first
    if observation is None:
        return (), ()

    def again(filling: int) -> Observation | None:
        outcome, left = repeat(filling)
        same = all(
            now is None or before is None or now.tobytes() == before.tobytes()
            for now, before in zip(left, outputs, strict=True)
        )
        return outcome if same else None

    try:
        return without_stray(observation, again, texts)
    except (TimeLimitError, MemoryError):
        # The launch itself has ended. Nobody knows what its reads reach.
        return observation.hazards, ()


def _described(hazards: Sequence[Hazard], texts: Mapping[str, str], artifact: Artifact) -> tuple[Hazard, ...]:
    """Return hazards with their cures, the text of their lines and, for headers, the lines that call them."""
    found = tuple(with_call_sites(with_source(hazards, texts), artifact, texts))
    return with_cures(found, read=lambda file: texts[file] if file in texts else source_text(file))


def _named(
    args: Sequence[Any] | Mapping[str, Any], ordered: Sequence[Any], outputs: list[Array | None]
) -> list[Array] | dict[str, Array]:
    if isinstance(args, Mapping):
        # An array passed twice is one buffer, so either of its positions can be used.
        found = {id(value): output for value, output in zip(ordered, outputs, strict=True) if output is not None}
        return {name: found[id(value)] for name, value in args.items() if id(value) in found}
    return [output for output in outputs if output is not None]


def _where(device: str | Device | None, arch: str | None) -> Device:
    """Return the requested device. An emulated one without an architecture gets that of the code."""
    if device is None:
        device = "cuda" if _gpu_here() else "emulated"
    if not isinstance(device, str):
        return device
    name = parse_device(device)
    if name.kernels != "cuda":
        raise UsageError(f"launch: CUDA kernels run on cuda and emulated devices, not on {device}")
    if name.family == "emulated" and not name.which and arch is not None:
        return _open(str(DeviceName("emulated", arch)))
    return _open(device)


@cache
def _open(name: str) -> Device:
    """Open a device, or return it if it is open. Later launches reuse a GPU's context and an emulator's compiled
    handlers.
    """
    return open_device(name)


@cache
def _gpu_here() -> bool:
    try:
        _open("cuda")
    except DeviceError:
        return False
    return True


def _extents(name: str, value: Extents) -> tuple[int, int, int]:
    listed: Sequence[Any] = list(value) if isinstance(value, Sequence) else [value]
    if not 1 <= len(listed) <= 3:
        raise UsageError(f"launch: {name} has {len(listed)} extents; there are one to three")
    x, y, z = (*(_whole(name, extent) for extent in listed), 1, 1)[:3]
    return x, y, z


def _whole(name: str, value: Any) -> int:
    try:
        number = operator.index(value)
    except TypeError as error:
        raise ArgumentTypeError(f"launch: {name} is {shown(value)}, not whole numbers") from error
    if not 0 <= number < 2**31:
        raise UsageError(f"launch: {name} is {shown(number)}; it must be at least 0 and less than 2^31")
    return number
