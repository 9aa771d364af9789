"""Run one conformance kernel on any device that runs CUDA code, and give its output's bits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from cases import Argument, Case, kernel_artifact
from edges import DTYPES, Bits

from gemmlab.core.errors import DeviceError
from gemmlab.core.program import Launch


def execute(device: Any, case: Case, arch: str) -> Bits:
    """Bits of the kernel's one output. Raises what the device raises; `DeviceError` where it has no textures."""
    inputs = [np.ascontiguousarray(bits) for bits in case.inputs()]
    loaded = device.load(kernel_artifact(case, arch))
    buffers = [device.upload(bits) for bits in inputs]
    try:
        args = tuple(_passed(device, case, buffers, inputs))
        device.launch(loaded, Launch(args, case.grid, case.threads, case.smem_bytes))
        described = [argument for argument in case.arguments if argument.role != "n"]
        (place,) = (at for at, argument in enumerate(described) if argument.role in {"out", "inout"})
        device.download(buffers[place], inputs[place])
        return inputs[place]
    finally:
        for buffer in buffers:
            device.free(buffer)


def _passed(device: Any, case: Case, buffers: list[Any], inputs: list[Bits]) -> Iterator[Any]:
    given = iter(zip(buffers, inputs, strict=True))
    for argument in case.arguments:
        if argument.role == "n":
            yield np.int32(case.n)
            continue
        buffer, bits = next(given)
        if argument.role == "scalar":
            yield from (_scalar(argument, value) for value in bits)
        elif argument.role == "texture":
            yield _texture(device, buffer, argument)
        else:
            yield buffer


def _scalar(argument: Argument, value: Any) -> Any:
    return DTYPES.get(argument.kind, np.uint32)(value)


def _texture(device: Any, buffer: Any, argument: Argument) -> np.uint64:
    """A texture object over a buffer of floats, `argument.texels` to an element."""
    make = getattr(device, "linear_texture", None)
    if make is None:
        raise DeviceError(f"{device.id} makes no textures")
    return np.uint64(make(buffer, argument.texels))
