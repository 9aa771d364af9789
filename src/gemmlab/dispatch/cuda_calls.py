"""`gemmlab.gemm` of arrays of other packages that lie on a GPU.

A product of two matrices is one launch on the caller's stream, or a few for kernels with several steps; so are most
batches. A call copies nothing to the host and does not wait.
"""

from __future__ import annotations

from typing import Any

from gemmlab.arrays.packages import package_of
from gemmlab.devices.cuda_driver import open_driver, preserved_context
from gemmlab.dispatch.batches import batch_of
from gemmlab.dispatch.call import Call
from gemmlab.dispatch.cuda_again import remember
from gemmlab.dispatch.cuda_batches import plan_for
from gemmlab.dispatch.cuda_gemm import CudaGemm, gemm_on
from gemmlab.dispatch.cuda_operands import checked_call, one_ordinal, placed, stored_first
from gemmlab.dispatch.cuda_plan import AnyPlan
from gemmlab.dispatch.lending import hold
from gemmlab.dispatch.results import as_its_package_s
from gemmlab.dispatch.scratch import Scratch


def device_gemm(call: Call) -> Any:
    """Return the result of `gemmlab.gemm` for arrays on a GPU: the product is queued on its stream, not yet computed.

    Raises the errors of `gemmlab.gemm`. What was found for the layouts is stored for `cuda_again`.
    """
    one = checked_call(call)
    operands = one.operands
    with preserved_context():
        driver = open_driver()
        gemm = gemm_on(one_ordinal(driver, one.found))
        gemm.device.activate()
        result = placed(driver, gemm.device, one)
        if result.target.size:
            batch = batch_of(operands, result.target)
            what = stored_first(batch, operands)
            plan, steps = plan_for(gemm, batch, what, one.call)
            scratch = _scratch(gemm, plan, result.stream, one.beside)
            plan.enqueue(result.stream, operands.alpha, operands.beta, what.a, what.b, what.c, steps, scratch)
            hold(driver, list(one.found.values()), result.stream)
            remember(one.call, gemm, plan, steps, operands, batch)
    return as_its_package_s(one.beside, result.array)


def _scratch(gemm: CudaGemm, plan: AnyPlan, stream: int, value: Any) -> Scratch | None:
    """Return scratch memory for a plan, from the package of the array `value`; `None` if the plan needs none."""
    if plan.needs is None:
        return None
    package = package_of(value)
    fresh = None if package is None else plan.needs.fresh(package, value)
    return gemm.scratch.take(plan.needs, stream, package, fresh)
