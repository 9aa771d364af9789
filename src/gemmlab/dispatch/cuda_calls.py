"""`gemmlab.gemm` of arrays of other packages that lie on a GPU.

A product of two matrices is one launch on the caller's stream, and so are most batches. Nothing is copied to the host
and nothing waited for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.arrays.on_gpu import DeviceArray
from gemmlab.arrays.packages import package_of, stream_for
from gemmlab.core.errors import DeviceError, UsageError
from gemmlab.devices.cuda_driver import Driver, open_driver, preserved_context
from gemmlab.devices.cuda_memory import ordinal_of
from gemmlab.dispatch.batches import Batch, batch_of
from gemmlab.dispatch.call import Call
from gemmlab.dispatch.cuda_again import remember
from gemmlab.dispatch.cuda_batches import AnyPlan, plan_for
from gemmlab.dispatch.cuda_gemm import CudaGemm, gemm_on
from gemmlab.dispatch.lending import hold, wait_for
from gemmlab.dispatch.request import Operand, Request, checked_target, request, same
from gemmlab.dispatch.results import as_its_package_s, place_for
from gemmlab.dispatch.scratch import Scratch
from gemmlab.dispatch.shadows import copied, device_operand, in_place, packed
from gemmlab.dispatch.storage import Stored, stored

Float32Array = npt.NDArray[np.float32]


def device_gemm(call: Call) -> Any:
    """Compute `gemmlab.gemm` for arrays on a GPU, with the same errors."""
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
    values, found = call.arrays, _places(operands, out)
    name = "out" if out is not None else next((n for n in "abc" if package_of(values[n]) is not None), "a")
    with preserved_context():
        driver = open_driver()
        gemm = gemm_on(_ordinal(driver, found))
        gemm.device.activate()
        if target is None:
            place = place_for(values[name], found[name], operands.shape, gemm.device)
            result, stream = place.array, place.stream
            target = packed(operands.shape, place.pointer)
        else:
            result, stream = call.out, stream_for(call.out, found["out"])
        for operand in found.keys() - {name}:
            wait_for(driver, values[operand], found[operand], stream)
        if operands.addend is not None and not same(operands.addend, target):
            _fill(driver, result, call.c, target, operands.addend, stream)
        if target.size:
            batch = batch_of(operands, target)
            what = _stored(batch, operands)
            plan, steps = plan_for(gemm, batch, what, call)
            scratch = _scratch(gemm, plan, stream, values[name])
            plan.enqueue(stream, operands.alpha, operands.beta, what.a, what.b, what.c, steps, scratch)
            hold(driver, list(found.values()), stream)
            remember(call, gemm, plan, steps, operands, batch)
    return as_its_package_s(values[name], result)


def _places(operands: Request, out: Operand | None) -> dict[str, DeviceArray]:
    """Return all arrays of a call on the GPU, by name."""
    pairs = zip(("a", "b", "c", "out"), (*operands.operands, out), strict=True)
    return {name: x.on_gpu for name, x in pairs if x is not None and x.on_gpu is not None}


def _scratch(gemm: CudaGemm, plan: AnyPlan, stream: int, value: Any) -> Scratch | None:
    """Return scratch memory for a plan from the package of the result, if it needs some."""
    if plan.needs is None:
        return None
    package = package_of(value)
    fresh = None if package is None else plan.needs.fresh(package, value)
    return gemm.scratch.take(plan.needs, stream, package, fresh)


def _stored(batch: Batch, operands: Request) -> Stored:
    what = stored(*batch.first, operands.alpha, operands.beta, batch.distances)
    if what is None:
        raise UsageError(
            f"gemm: out has strides {batch.fulls.strides} bytes; its rows or its columns must be contiguous"
        )
    return what


def _ordinal(driver: Driver, found: Mapping[str, DeviceArray]) -> int:
    """Return the number of the GPU that all operands lie on."""
    where = {name: ordinal_of(driver, array) for name, array in found.items()}
    known = {name: ordinal for name, ordinal in where.items() if ordinal is not None}
    if len(set(known.values())) > 1:
        raise DeviceError(
            f"gemm: {', '.join(f'{name} lies on cuda:{n}' for name, n in known.items())}; one GPU is needed"
        )
    return next(iter(known.values()), 0)


def _fill(driver: Driver, result: Any, c: Any, target: Float32Array, addend: Float32Array, stream: int) -> None:
    """Copy c into the result, which the kernel adds to."""
    package = package_of(result)
    if package is not None and package is package_of(c):
        package.put(result, c)
    elif addend.flags.c_contiguous and target.flags.c_contiguous:
        driver("cuMemcpyDtoDAsync", target.ctypes.data, addend.ctypes.data, target.nbytes, stream)
    else:
        raise UsageError(
            f"gemm: c has strides {addend.strides} bytes; on a GPU it must be contiguous and of the result's shape"
        )
