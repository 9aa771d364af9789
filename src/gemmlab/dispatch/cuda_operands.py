"""The arrays of one call on a GPU: checks, and a place for the result on the stream of its package."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.arrays.on_gpu import DeviceArray
from gemmlab.arrays.packages import package_of, stream_for
from gemmlab.core.errors import DeviceError, UsageError
from gemmlab.devices.cuda import CudaDevice
from gemmlab.devices.cuda_driver import Driver, copier
from gemmlab.devices.cuda_memory import ordinal_of
from gemmlab.dispatch.batches import Batch
from gemmlab.dispatch.call import Call
from gemmlab.dispatch.lending import wait_for
from gemmlab.dispatch.request import Operand, Request, checked_target, request, same
from gemmlab.dispatch.results import place_for
from gemmlab.dispatch.shadows import copied, device_operand, in_place, packed
from gemmlab.dispatch.storage import Stored, stored

Float32Array = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Checked:
    """A call whose operands kernels can read. Nothing has been written yet."""

    call: Call
    operands: Request
    target: Float32Array | None
    """A view that describes `out`; `None` if the result is a new array."""
    found: Mapping[str, DeviceArray]
    """All arrays of the call on the GPU, by the names a, b, c and out."""
    name: str
    """The name of the array whose package and stream the result has."""

    @property
    def beside(self) -> Any:
        """The array whose package and stream the result has."""
        return self.call.arrays[self.name]


@dataclass(frozen=True, slots=True)
class Placed:
    """A result that is ready to be computed."""

    array: Any
    target: Float32Array
    """A view that describes `array`."""
    stream: int
    """The stream on which the operands are ready, and on which the product is to be queued."""


def checked_call(call: Call) -> Checked:
    """Return a checked call for arrays on a GPU. Operands that no kernel can read are copied by their package.

    Raises `ArgumentTypeError` and `UsageError` as `gemmlab.gemm` does.
    """
    if call.threads is not None:
        raise UsageError("gemm: threads are for arrays on the CPU; these lie on a GPU")
    operands = request(call, device_operand)
    out = None if call.out is None else device_operand("gemm", "out", call.out)
    target = None if out is None else checked_target(out.view, operands)
    if not (in_place(operands.left) and in_place(operands.right)):
        call = call._replace(
            a=call.a if in_place(operands.left) else copied("a", call.a),
            b=call.b if in_place(operands.right) else copied("b", call.b),
        )
        operands = request(call, device_operand)
    values = call.arrays
    name = "out" if out is not None else next((n for n in "abc" if package_of(values[n]) is not None), "a")
    _require_fillable(values[name], call.c, target, operands.addend)
    return Checked(call, operands, target, _places(operands, out), name)


def placed(driver: Driver, device: CudaDevice, one: Checked) -> Placed:
    """Return `out` or a new array. If c is added and is not `out`, it is copied there.

    The stream of the result waits for those of the operands.
    """
    values, found, operands, target = one.call.arrays, one.found, one.operands, one.target
    if target is None:
        place = place_for(one.beside, found[one.name], operands.shape, device)
        result, stream = place.array, place.stream
        target = packed(operands.shape, place.pointer)
    else:
        result, stream = one.call.out, stream_for(one.call.out, found["out"])
    for operand in found.keys() - {one.name}:
        wait_for(driver, values[operand], found[operand], stream)
    if operands.addend is not None and not same(operands.addend, target):
        _fill(driver, result, one.call.c, target, operands.addend, stream)
    return Placed(result, target, stream)


def stored_first(batch: Batch, operands: Request) -> Stored:
    """Return the first product of a batch as kernels take it. Raises `UsageError` if no kernel can write the result."""
    what = stored(*batch.first, operands.alpha, operands.beta, batch.distances, batch.swapped)
    if what is None:
        raise UsageError(
            f"gemm: out has strides {batch.fulls.strides} bytes; its rows or its columns must be contiguous"
        )
    return what


def one_ordinal(driver: Driver, found: Mapping[str, DeviceArray]) -> int:
    """Return the number of the GPU that all arrays lie on, 0 if it is unknown for all. Raises `DeviceError` for two."""
    where = {name: ordinal_of(driver, array) for name, array in found.items()}
    known = {name: ordinal for name, ordinal in where.items() if ordinal is not None}
    if len(set(known.values())) > 1:
        raise DeviceError(
            f"gemm: {', '.join(f'{name} lies on cuda:{n}' for name, n in known.items())}; one GPU is needed"
        )
    return next(iter(known.values()), 0)


def _places(operands: Request, out: Operand | None) -> dict[str, DeviceArray]:
    """Return all arrays of a call on the GPU, by name."""
    pairs = zip(("a", "b", "c", "out"), (*operands.operands, out), strict=True)
    return {name: x.on_gpu for name, x in pairs if x is not None and x.on_gpu is not None}


def _require_fillable(beside: Any, c: Any, target: Float32Array | None, addend: Float32Array | None) -> None:
    """Raise `UsageError` if c can be copied into the result neither by the driver nor by a package."""
    if addend is None or (target is not None and same(addend, target)) or _by_package(beside, c):
        return
    if not one_block(addend, target):
        raise UsageError(
            f"gemm: c has strides {addend.strides} bytes; on a GPU it must be contiguous and of the result's shape"
        )


def one_block(addend: Float32Array, target: Float32Array | None) -> bool:
    """Return whether c, broadcast to the result's shape, is one block of memory in the order of the result: one copy by
    the driver. `target` is `None` for a new result.
    """
    return addend.flags.c_contiguous and (target is None or target.flags.c_contiguous)


def _by_package(beside: Any, c: Any) -> bool:
    package = package_of(beside)
    return package is not None and package is package_of(c)


def _fill(driver: Driver, result: Any, c: Any, target: Float32Array, addend: Float32Array, stream: int) -> None:
    """Copy c into the result on `stream`; the kernel adds to it later. The driver's copy takes less time of the host
    than that of a package, which is for c with other strides.
    """
    package = package_of(result)
    if package is None or one_block(addend, target):
        copier(driver, target.nbytes)(target.ctypes.data, addend.ctypes.data, stream)
    else:
        package.put(result, c)
