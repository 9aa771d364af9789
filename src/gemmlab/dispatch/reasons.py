"""The choice of `gemmlab.gemm` and its reasons, for arrays or shapes, also on a GPU that is not here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gemmlab.arrays.on_gpu import is_device_array
from gemmlab.arrays.on_host import host_view, is_host_array
from gemmlab.core.errors import ArgumentTypeError, DeviceError, UsageError
from gemmlab.core.precision import FLOAT32
from gemmlab.core.words import shown
from gemmlab.devices.device_name import RUNS, family_part, parse_device
from gemmlab.devices.select import DEFAULT_ARCH
from gemmlab.dispatch.batch_axes import Part, axes_of
from gemmlab.dispatch.batch_choice import choice_of_call
from gemmlab.dispatch.batches import batch_of
from gemmlab.dispatch.call import Call
from gemmlab.dispatch.choice import named
from gemmlab.dispatch.choice_store import EVERY, machine_of_cpu, stored_choice
from gemmlab.dispatch.choice_values import FORCED, RULE, TUNED, Choice
from gemmlab.dispatch.cpu_precision import cpu_way, forced_way
from gemmlab.dispatch.machine_code import with_machine_code
from gemmlab.dispatch.override import USUAL
from gemmlab.dispatch.precision_rule import HIGHEST, precision_for
from gemmlab.dispatch.request import Float32Array, Operand, Request, host_operand, request
from gemmlab.dispatch.shadows import device_array_of, device_operand, in_place, packed
from gemmlab.dispatch.storage import Stored, stored
from gemmlab.dispatch.waves import Gpu, gpu_model

_MOST_ELEMENTS = 2**60
"""The most elements of a float32 array: sizes and strides in bytes have 63 bits."""


def explain(call: Call, device: object) -> Choice:
    """Return the result of `gemmlab.explain_choice` for a device as the caller names it (`device_to_explain`)."""
    operands = request(call, look)
    where = device_to_explain(device, call.a, call.b)
    if where is None:
        return _on_cpu(call, _one(operands))
    what, count = _launch(operands)
    if isinstance(where, int):
        from gemmlab.dispatch.cuda_gemm import choice_on

        choice, gpu = choice_on(where, call, count, what)
    else:
        choice, gpu = choice_of_call(call, count, what, where), where
    return with_machine_code(choice, what.problem.layout, gpu)


def _one(operands: Request) -> Stored:
    """Return one of the products of two matrices that the result consists of.

    An operand that kernels cannot read in place is described as a contiguous copy.
    """
    pair = operands.left, operands.right
    left, right = (x[(0,) * (x.ndim - 2)] if x.size and in_place(x) else packed(x.shape[-2:]) for x in pair)
    return _readable(left, right, packed((left.shape[0], right.shape[1])))


def _launch(operands: Request) -> tuple[Stored, int]:
    """Return (first product, number of products) of the GPU's launch; the number is 0 for an empty result.

    An operand that kernels cannot read in place is described as a contiguous copy.
    """
    target = packed(operands.shape)
    if not target.size:
        return _one(operands), 0
    left, right = (x if x.size and in_place(x) else packed(x.shape) for x in (operands.left, operands.right))
    batch = batch_of(replace(operands, left=left, right=right), target)
    return _readable(*batch.first, batch.distances), Part(axes_of(batch)).products


def _readable(
    left: Float32Array, right: Float32Array, full: Float32Array, distances: tuple[int, ...] = ()
) -> Stored:  # fmt: skip
    found = stored(left, right, full, 1.0, 0.0, distances)
    assert found is not None  # noqa: S101 - packed matrices and those in place can be read
    return found


def look(call: str, name: str, value: Any) -> Operand:
    """Return an operand for an array, or for a shape, which is a sequence of extents. Its view must not be read.

    Raises `ArgumentTypeError` for another value, and `UsageError` for a shape that is too large.
    """
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        if not all(isinstance(extent, int | np.integer) and extent >= 0 for extent in value):
            raise ArgumentTypeError(f"{call}: {name} is {shown(value)}, neither an array nor a shape")
        if math.prod(value) > _MOST_ELEMENTS or max(value, default=0) > _MOST_ELEMENTS:
            raise UsageError(f"{call}: {name} of shape {shown(value)} is larger than any array can be")
        return Operand(packed(tuple(int(extent) for extent in value)))
    if is_device_array(value):
        return device_operand(call, name, value)
    return host_operand(call, name, host_view(call, name, value) if is_host_array(value) else value)


def device_to_explain(device: object, a: Any, b: Any) -> Gpu | int | None:
    """Return the device to explain: a GPU model, the number of a GPU of this machine, or `None` for the CPU.

    If `device` is `None`, the device is the one on which the operands `a` and `b` lie. For shapes, it is the first GPU
    of this machine, if there is one. Raises `ArgumentTypeError` and `DeviceError`.
    """
    if device is None:
        return _by_operands(a, b)
    if not isinstance(device, str):
        raise ArgumentTypeError(
            f"explain_choice: device is {device!r}; it must be a name such as 'cpu', 'cuda:0' or 'H200'"
        )
    if family_part(device) not in RUNS:
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
        return 0 if on_gpu is None else ordinal_of(driver, device_array_of("gemm", "a", on_gpu)) or 0
    except DeviceError:
        if on_gpu is not None:
            raise
        return None


def _on_cpu(call: Call, what: Stored) -> Choice:
    precision_for(call.precision, (FLOAT32,))
    problem = named(what.problem, call.precision)
    extents = (what.problem.m, what.problem.n, what.problem.k)
    if call.forced:
        way = forced_way(call, extents)
        return Choice(way.kernel.id, way.config, FORCED, "cpu", problem, way.reason)
    way = cpu_way(call.least_precision, extents)
    own = stored_choice(machine_of_cpu(), EVERY, HIGHEST, way.kernel) if way.kernel.id == USUAL else None
    if own is None:
        return Choice(way.kernel.id, way.config, RULE, "cpu", problem, way.reason)
    gain = f"{own.shipped_us / own.us:.3f} x as fast as the shipped configuration, which GEMMLAB_TUNED=0 takes"
    reason = f"{way.reason}; tuned: measured on this machine, {own.taken[:10]}, {gain}"
    return Choice(way.kernel.id, way.kernel.configure(own.config), TUNED, "cpu", problem, reason)
