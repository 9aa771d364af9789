"""Products of two matrices on one GPU: the kernel for each shape is chosen, built and loaded once."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.core.errors import UsageError
from gemmlab.core.precision import FLOAT_BYTES
from gemmlab.devices.cuda import CudaDevice
from gemmlab.devices.cuda_driver import preserved_context
from gemmlab.dispatch.batch_choice import choice_of_call
from gemmlab.dispatch.batches import Step
from gemmlab.dispatch.call import Call
from gemmlab.dispatch.choice import VECTOR_BYTES, choice_for, require_extents
from gemmlab.dispatch.choice_values import Choice
from gemmlab.dispatch.cuda_plan import AnyPlan, Plan, together
from gemmlab.dispatch.override import checked_config, named_kernel
from gemmlab.dispatch.scratch import Needs, ScratchMemory
from gemmlab.dispatch.storage import Stored
from gemmlab.dispatch.waves import Gpu, gpu_of_facts
from gemmlab.kernels.instances import instance_for, load
from gemmlab.kernels.kernel import NO_MEMORY
from gemmlab.ops.gemm import GemmOp
from gemmlab.ops.gemm_problem import GemmProblem

Float32Array = npt.NDArray[np.float32]
_CHANGING = ("alpha", "a", "b", "beta", "c")
"""Arguments of a kernel that differ from call to call; shapes and strides determine all others."""
_MOST_PLANS = 1024


class CudaGemm:
    """Products on one GPU. The plan for each shape is stored."""

    def __init__(self, ordinal: int) -> None:
        self.device = CudaDevice(ordinal)
        self.gpu: Gpu = gpu_of_facts(self.device.name, self.device.facts)
        self.scratch = ScratchMemory(self.device)
        self._plans: dict[tuple[Any, ...], AnyPlan] = {}

    def plan(self, what: Stored, call: Call) -> AnyPlan:
        """Return the plan for a product of a call, or for each product of a batch of which `what` is the first.

        Raises `UsageError`, `DeviceError` and `CompileError`.
        """
        p = what.problem
        named = None if call.config is None else tuple(sorted(checked_config(call.config).items()))
        how = (call.precision, str(call.kernel), named, bool(call.reproducible))
        aligned = what.begins_on(VECTOR_BYTES)
        key = (p.m, p.n, p.k, p.lda, p.ldb, p.ldc, p.trans_a, p.trans_b, aligned, *how)
        plan = self._plans.get(key)
        if plan is None:
            require_extents(call, p)
            choice = choice_for(call, what, self.gpu)
            usual = choice if aligned else choice_for(call, replace(what, a=0, b=0, c=0, distances=()), self.gpu)
            plan = self._prepared(choice, p, usual.same_code(choice))
            if len(self._plans) >= _MOST_PLANS:
                self._plans.clear()
            self._plans[key] = plan
        _require(plan if isinstance(plan, Plan) else plan.plans[0][0], what)
        return plan

    def _prepared(self, choice: Choice, problem: GemmProblem, any_alignment: bool) -> AnyPlan:
        """Return the plan for a product: of the whole product, or of its regions one after another."""
        if choice.regions is None:
            return self._at_once(choice, problem, any_alignment)
        alike = dict[tuple[int, int], list[Step]]()
        for row, column, rows, columns in choice.regions.starts():
            alike.setdefault((rows, columns), []).append(_start(problem, row, column))
        return together([
            (self._at_once(choice, replace(problem, m=rows, n=columns), any_alignment), tuple(starts))
            for (rows, columns), starts in alike.items()
        ])  # fmt: skip

    def _at_once(self, choice: Choice, problem: GemmProblem, any_alignment: bool) -> Plan:
        kernel, op = named_kernel(choice.kernel, "cuda"), GemmOp()
        scalars = op.scalars(problem)
        if why := kernel.refusal(choice.config, scalars):
            raise UsageError(f"gemm: {kernel.id} does not take {problem.label}: {why}")
        # A caller would have to keep a texture alive, so the instance has none and the kernel uses plain loads.
        instance = instance_for(kernel, choice.config, scalars)
        at, scratch_at = instance.words(*_CHANGING), instance.words(*NO_MEMORY)
        if not instance.launches or len(at) != len(_CHANGING):
            raise UsageError(f"gemm: {kernel.id} must take all of {', '.join(_CHANGING)}")
        if "tickets" in kernel.args and len(scratch_at) < len(NO_MEMORY):
            raise UsageError(f"gemm: {kernel.id} has tickets, so it must take a workspace too")
        parameters = instance.parameters
        several = len(instance.launches) > 1
        needs = Needs(kernel.workspace_bytes(problem, parameters), kernel.tickets(problem, parameters), several)
        code = load(kernel, self.device, parameters)
        launch, *following = (self.device.words_launch(code, each) for each in instance.launches)
        alpha, a, b, beta, c = at
        return Plan(
            kernel=kernel, config=choice.config, launch=launch, at=(a, b, c), scalars_at=(alpha, beta),
            needs=needs if needs.nbytes else None, scratch_at=scratch_at, following=tuple(following),
            mask=kernel.align - 1 if kernel.align > FLOAT_BYTES else 0, any_alignment=any_alignment,
            further=instance.further_words("a", "b", "c"),
        )  # fmt: skip


def _start(problem: GemmProblem, row: int, column: int) -> Step:
    """Return the byte offsets of the row of op(A), the column of op(B) and the element of C where a region begins."""
    a = row if problem.trans_a else row * problem.lda
    b = column * problem.ldb if problem.trans_b else column
    return FLOAT_BYTES * a, FLOAT_BYTES * b, FLOAT_BYTES * (row * problem.ldc + column)


def _require(plan: Plan, what: Stored) -> None:
    """Raise `UsageError` if the plan's kernel does not take the scalars or addresses of `what`."""
    kernel = plan.kernel
    if kernel.restrictions and (why := kernel.refusal(plan.config, GemmOp().scalars(what.problem))):
        raise UsageError(f"gemm: {kernel.id} does not take {what.problem.label}: {why}")
    what.require_begin_on(max(kernel.align, FLOAT_BYTES), kernel.id)


_gemms: dict[int, CudaGemm] = {}
_lock = threading.Lock()


def gemm_on(ordinal: int) -> CudaGemm:
    """Return the one `CudaGemm` of the GPU with this number. Raises `DeviceError` without such a GPU."""
    with _lock:
        if ordinal not in _gemms:
            _gemms[ordinal] = CudaGemm(ordinal)
        return _gemms[ordinal]


def choice_on(ordinal: int, call: Call, count: int, what: Stored) -> tuple[Choice, Gpu]:
    """Return (choice, GPU) for `count` products, of which `what` is the first, on the GPU with this number.

    Raises `DeviceError` without such a GPU, and otherwise as `choice_for` does.
    """
    with preserved_context():
        gpu = gemm_on(ordinal).gpu
        return choice_of_call(call, count, what, gpu), gpu
