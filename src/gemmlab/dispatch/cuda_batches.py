"""Batches on one GPU: all products in one launch if that is faster, else a launch for each."""

from __future__ import annotations

import threading
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from gemmlab.dispatch.batch_axes import Axis, Part, axes_of, parts
from gemmlab.dispatch.batch_choice import batch_choice
from gemmlab.dispatch.batches import ONE, Batch, Step
from gemmlab.dispatch.call import Call
from gemmlab.dispatch.choice_values import Choice
from gemmlab.dispatch.cuda_gemm import CudaGemm
from gemmlab.dispatch.cuda_plan import AnyPlan, Plan, together
from gemmlab.dispatch.storage import Stored
from gemmlab.kernels.catalog import find_kernel
from gemmlab.kernels.instances import Instance, LoadedCode, instance_for
from gemmlab.ops.batch_records import axes_value
from gemmlab.ops.gemm import GemmOp
from gemmlab.ops.gemm_problem import GemmProblem

_MOST_PLANS = 1024


class CudaBatches:
    """Batches on one GPU. The plan for each shape and set of axes is stored."""

    def __init__(self, gemm: CudaGemm) -> None:
        # Holds no reference to the `CudaGemm`, the key under which this object is found.
        self._device, self._gpu = gemm.device, gemm.gpu
        self._code = LoadedCode(gemm.device)
        self._plans: dict[tuple[Any, ...], tuple[AnyPlan, tuple[Step, ...]] | None] = {}

    def plan(self, batch: Batch, what: Stored, call: Call) -> tuple[AnyPlan, tuple[Step, ...]] | None:
        """Return (plan for a whole batch, starts of its launches); `what` is the batch's first product.

        `None` for a single product, if the caller names a kernel, if no kernel of several products can compute them, or
        if it is faster to compute them one after the other. Raises `UsageError` and `CompileError`.
        """
        if call.forced or batch.fulls.ndim == 2:
            return None
        axes, p = axes_of(batch), what.problem
        how = (call.precision, bool(call.reproducible))
        key = (axes, p.m, p.n, p.k, p.lda, p.ldb, p.ldc, p.trans_a, p.trans_b, *how)
        if key not in self._plans:
            if len(self._plans) >= _MOST_PLANS:
                self._plans.clear()
            choice = batch_choice(call, Part(axes).products, what, self._gpu)
            self._plans[key] = None if choice is None else self._prepared(choice, axes, p)
        return self._plans[key]

    def _prepared(
        self, choice: Choice, axes: tuple[Axis, ...], problem: GemmProblem
    ) -> tuple[AnyPlan, tuple[Step, ...]]:
        (one,) = _instance(choice, Part(()), problem).launches
        blocks = one.grid[0]
        plans = [(self._plan(choice, part, problem), part.starts) for part in parts(axes, blocks)]
        return plans[0] if len(plans) == 1 else (together(plans), ONE)

    def _plan(self, choice: Choice, part: Part, problem: GemmProblem) -> Plan:
        instance = _instance(choice, part, problem)
        (one,) = instance.launches
        launch = self._device.words_launch(self._code.load(instance.kernel, instance.parameters), one)
        a, b, c, alpha, beta = instance.places("a", "b", "c", "alpha", "beta")
        return Plan(instance.kernel, choice.config, launch, at=(a, b, c), scalars_at=(alpha, beta))


def _instance(choice: Choice, part: Part, problem: GemmProblem) -> Instance:
    batch = {"batch": np.int64(part.products), "axes": axes_value(part.in_elements)}
    return instance_for(find_kernel(choice.kernel), choice.config, GemmOp().scalars(problem), **batch)


_batches: WeakKeyDictionary[CudaGemm, CudaBatches] = WeakKeyDictionary()
_lock = threading.Lock()


def plan_for(gemm: CudaGemm, batch: Batch, what: Stored, call: Call) -> tuple[AnyPlan, tuple[Step, ...]]:
    """Return (plan for the products of a call, starts of its launches); `what` is the first product.

    Raises `UsageError`, `DeviceError` and `CompileError`.
    """
    with _lock:
        together = _batches.get(gemm) or _batches.setdefault(gemm, CudaBatches(gemm))
    return together.plan(batch, what, call) or (gemm.plan(what, call), batch.steps)
