"""Why `gemmlab.gemm` would run what it runs: its choice for arrays or shapes, also on a GPU that is not here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gemmlab.core.arguments import float32_array
from gemmlab.core.errors import ArgumentTypeError, DeviceError, UsageError
from gemmlab.core.precision import FLOAT32
from gemmlab.core.wording import shown
from gemmlab.devices.host_arrays import host_view, is_host_array
from gemmlab.devices.interop import is_device_array
from gemmlab.devices.select import DEFAULT_ARCH, RUNS, parse_device
from gemmlab.dispatch.batches import batch_of
from gemmlab.dispatch.choice import FORCED, RULE, Choice, choose, forced, named
from gemmlab.dispatch.naming import USUAL, checked_config, named_kernel
from gemmlab.dispatch.operands import Float32Array, Request, request
from gemmlab.dispatch.precision import precision_for
from gemmlab.dispatch.shadows import device_operand, in_place, packed, shadow
from gemmlab.dispatch.store import shipped_table
from gemmlab.dispatch.stored import Stored, stored
from gemmlab.dispatch.waves import Gpu, gpu_model

_MOST_ELEMENTS = 2**60
"""Of an array of float32: sizes and strides in bytes have 63 bits."""


def explain(
    a: Any, b: Any, trans_a: object, trans_b: object, *, device: object, precision: str, kernel: object,
    config: object,
) -> Choice:  # fmt: skip
    """`gemmlab.explain_choice`."""
    asked = request(a, b, None, 1.0, 0.0, trans_a, trans_b, _look)
    where = _where(device, a, b)
    if where is None:
        return _on_cpu(_one(asked), precision, kernel, config)
    what = _launch(asked)
    if isinstance(where, int):
        from gemmlab.dispatch.cuda_gemm import choice_on

        return choice_on(where, what, precision, kernel, config)
    table = shipped_table()
    if kernel is None and config is None:
        return choose(what.problem, where, table, precision=precision, aligned=what.aligned)
    return forced(kernel, config, what.problem, where, table, precision=precision, aligned=what.aligned)


def _one(asked: Request) -> Stored:
    """One of the products of two matrices that make the result."""
    left, right = (
        x[(0,) * (x.ndim - 2)] if x.size and in_place(x) else packed(x.shape[-2:]) for x in (asked.left, asked.right)
    )
    return _readable(left, right, packed((left.shape[0], right.shape[1])))


def _launch(asked: Request) -> Stored:
    """The first of the launches that make the result on a GPU, as its kernel would be given it."""
    target = packed(asked.shape)
    if not target.size:
        return _one(asked)
    left, right = (x if x.size and in_place(x) else packed(x.shape) for x in (asked.left, asked.right))
    batch = batch_of(replace(asked, left=left, right=right), target)
    return _readable(*batch.first, batch.distances)


def _readable(
    left: Float32Array, right: Float32Array, full: Float32Array, distances: tuple[int, ...] = ()
) -> Stored:  # fmt: skip
    found = stored(left, right, full, 1.0, 0.0, distances)
    assert found is not None  # noqa: S101 - packed matrices and those in place can be read
    return found


def _look(call: str, name: str, value: Any) -> Float32Array:
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        if not all(isinstance(extent, int | np.integer) and extent >= 0 for extent in value):
            raise ArgumentTypeError(f"{call}: {name} is {shown(value)}, neither an array nor a shape")
        if math.prod(value) > _MOST_ELEMENTS or max(value, default=0) > _MOST_ELEMENTS:
            raise UsageError(f"{call}: {name} of shape {shown(value)} is larger than any array can be")
        return packed(tuple(int(extent) for extent in value))
    if is_device_array(value):
        return shadow(device_operand(call, name, value))
    return float32_array(call, name, host_view(call, name, value) if is_host_array(value) else value)


def _where(device: object, a: Any, b: Any) -> Gpu | int | None:
    """A GPU, the number of one that is here, or `None` for the CPU."""
    if device is None:
        return _by_operands(a, b)
    if not isinstance(device, str):
        raise ArgumentTypeError(f"explain_choice: device is {device!r}; it is a name, as 'cpu', 'cuda:0' or 'H200'")
    if device.partition(":")[0] not in RUNS:
        try:
            return gpu_model(device)
        except UsageError as error:
            raise DeviceError(f"no device {device!r}: cpu, cuda[:N], emulated[:sm_XX], or a model; {error}") from error
    parsed = parse_device(device)
    if parsed.family == "emulated":
        from gemmlab.devices.emulated import MODELS

        if (arch := parsed.which or DEFAULT_ARCH) not in MODELS:
            raise DeviceError(f"no emulator for {arch}: there is one for {', '.join(MODELS)}")
        return gpu_model(MODELS[arch])
    return int(parsed.which or 0) if parsed.family == "cuda" else None


def _by_operands(a: Any, b: Any) -> int | None:
    arrays = [value for value in (a, b) if not isinstance(value, Sequence)]
    on_gpu = next((value for value in arrays if is_device_array(value)), None)
    if arrays and on_gpu is None:
        return None
    try:
        from gemmlab.devices.cuda_driver import open_driver
        from gemmlab.devices.cuda_memory import ordinal_of

        driver = open_driver()
        return 0 if on_gpu is None else ordinal_of(driver, device_operand("gemm", "a", on_gpu)) or 0
    except DeviceError:
        if on_gpu is not None:
            raise
        return None


def _on_cpu(what: Stored, precision: str, kernel: object, config: object) -> Choice:
    precision_for(precision, (FLOAT32,))
    found = named_kernel(USUAL if kernel is None else kernel, "cpu")
    usual = kernel is None and config is None
    reason = "the one kernel of the CPU: it serves every shape, single rows and columns by loops of their own"
    return Choice(
        kernel=found.id, config=found.configure(checked_config(config)), basis=RULE if usual else FORCED, where="cpu",
        problem=named(what.problem, precision), reason=reason if usual else "the caller names it",
    )  # fmt: skip
