"""`gemmlab.gemm` of arrays of other packages that lie on a GPU.

A product of two matrices is one launch on the caller's stream, or a few for kernels with several steps; so are most
batches. A call copies nothing to the host and does not wait. If there is no memory for the workspace of the kernel that
was chosen, the call is computed as one with `reproducible` at the highest precision is: such kernels need no workspace.
"""

from __future__ import annotations

from typing import Any

from gemmlab.arrays.packages import memory_errors, package_of
from gemmlab.devices.cuda_driver import Driver, open_driver, preserved_context
from gemmlab.dispatch.batches import batch_of
from gemmlab.dispatch.call import Call
from gemmlab.dispatch.cuda_again import remember
from gemmlab.dispatch.cuda_batches import plan_for
from gemmlab.dispatch.cuda_gemm import CudaGemm, gemm_on
from gemmlab.dispatch.cuda_operands import Checked, Placed, checked_call, one_ordinal, placed, stored_first
from gemmlab.dispatch.cuda_plan import AnyPlan, Plan
from gemmlab.dispatch.lending import hold
from gemmlab.dispatch.precision_rule import HIGHEST
from gemmlab.dispatch.results import as_its_package_s
from gemmlab.dispatch.scratch import Scratch


def device_gemm(call: Call) -> Any:
    """Return the result of `gemmlab.gemm` for arrays on a GPU: the product is queued on its stream, not yet computed.

    Raises the errors of `gemmlab.gemm`. What was found for the layouts is stored for `cuda_again`.
    """
    one = checked_call(call)
    with preserved_context():
        driver = open_driver()
        gemm = gemm_on(one_ordinal(driver, one.found))
        gemm.device.activate()
        result = placed(driver, gemm.device, one)
        queue(driver, gemm, one, result)
    return as_its_package_s(one.beside, result.array)


def queue(driver: Driver, gemm: CudaGemm, one: Checked, result: Placed) -> AnyPlan | None:
    """Queue the product of a checked call on the stream of its result, in the current context.

    Returns the plan for a product of two matrices that later calls can use; `None` for other results, and if there was
    no memory for a workspace.
    """
    if not result.target.size:
        return None
    usual = True
    operands = one.operands
    batch = batch_of(operands, result.target)
    what = stored_first(batch, operands)
    plan, steps = plan_for(gemm, batch, what, one.call)
    try:
        scratch = _scratch(gemm, plan, result.stream, one.beside)
    except memory_errors() as error:
        if one.call.forced:
            raise _out_of_memory(plan, what.problem.label) from error
        usual = False
        plan, steps = plan_for(gemm, batch, what, one.call._replace(precision=HIGHEST, reproducible=True))
        scratch = _scratch(gemm, plan, result.stream, one.beside)
    else:
        remember(driver, one.call, gemm, plan, steps, operands, batch)
    plan.enqueue(result.stream, operands.alpha, operands.beta, what.a, what.b, what.c, steps, scratch)
    hold(driver, list(one.found.values()), result.stream)
    return plan if usual and batch.fulls.ndim == 2 else None


def _scratch(gemm: CudaGemm, plan: AnyPlan, stream: int, value: Any) -> Scratch | None:
    """Return scratch memory for a plan, from the package of the array `value`; `None` if the plan needs none."""
    if plan.needs is None:
        return None
    package = package_of(value)
    fresh = None if package is None else plan.needs.fresh(package, value)
    return gemm.scratch.take(plan.needs, stream, package, fresh)


def _out_of_memory(plan: AnyPlan, product: str) -> MemoryError:
    """Return the error of a call that names a kernel for whose workspace there is no memory."""
    kernel = (plan if isinstance(plan, Plan) else plan.plans[0][0]).kernel
    nbytes = 0 if plan.needs is None else plan.needs.nbytes
    return MemoryError(
        f"gemm: {kernel.id} needs {nbytes:,} bytes of scratch memory for {product}, and the GPU has too little left: "
        "free some, or name neither kernel nor config; multiply-adds that need none then take its place"
    )
