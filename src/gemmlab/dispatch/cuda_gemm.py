"""Products of two matrices on one GPU: the kernel for each shape is chosen, built and loaded once."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.core.errors import UsageError
from gemmlab.core.precision import FLOAT_BYTES
from gemmlab.devices.cuda import CudaDevice
from gemmlab.devices.cuda_code import WordsLaunch
from gemmlab.devices.cuda_driver import preserved_context
from gemmlab.dispatch.batch_choice import choice_of_call
from gemmlab.dispatch.batches import Step
from gemmlab.dispatch.call import Call
from gemmlab.dispatch.choice import VECTOR_BYTES, choice_for
from gemmlab.dispatch.choice_values import Choice
from gemmlab.dispatch.override import checked_config, named_kernel
from gemmlab.dispatch.scratch import Needs, Scratch, ScratchMemory
from gemmlab.dispatch.storage import Stored
from gemmlab.dispatch.waves import Gpu, gpu_of_facts
from gemmlab.kernels.instances import instance_for, load
from gemmlab.kernels.kernel import NO_MEMORY, Kernel
from gemmlab.ops.gemm import GemmOp
from gemmlab.ops.gemm_problem import GemmProblem

Float32Array = npt.NDArray[np.float32]
_CHANGING = ("alpha", "a", "b", "beta", "c")
"""Arguments of a kernel that differ from call to call; shapes and strides determine all others."""
_MOST_PLANS = 1024
_IN_TURN = threading.Lock()


@dataclass(frozen=True, slots=True)
class Plan:
    """The launches of a product of one shape, ready for other addresses and scalars (but see `free`)."""

    kernel: Kernel
    config: Mapping[str, int]
    launch: WordsLaunch
    at: tuple[int, int, int]
    """Positions of the addresses of a, b and c among the words of all arguments."""
    scalars_at: tuple[int, int]
    """Positions of alpha and beta among the arguments."""
    needs: Needs | None = None
    """Scratch memory of the launches; `None` for a kernel that needs none."""
    scratch_at: tuple[int, ...] = ()
    """Positions of the addresses of workspace and tickets among the words; of the workspace alone for a kernel without
    tickets, of none for a kernel without both.
    """
    following: tuple[WordsLaunch, ...] = ()
    """Further launches, which read the data that `launch` wrote to the workspace. `at` and the other positions are
    those of its arguments too.
    """

    mask: int = 0
    """The bits that must be 0 in operands' addresses; 0 if the alignment of a float is enough."""
    any_alignment: bool = True
    """False if operands that begin on 16 bytes get another kernel or configuration, and so another plan."""

    @property
    def free(self) -> bool:
        """True if the plan serves any scalars, and any addresses in which the bits of `mask` are 0."""
        return self.any_alignment and not any({"alpha", "beta"} & one.that.names for one in self.kernel.restrictions)

    def enqueue(
        self, stream: int, alpha: float, beta: float, a: int, b: int, c: int, steps: tuple[Step, ...],
        scratch: Scratch | None = None,
    ) -> None:  # fmt: skip
        """Queue the launches on a stream of the current context, once for each of `steps`.

        `steps` has the byte offsets of each product from the addresses `a`, `b` and `c`. A plan with `needs` gets
        scratch memory, which all steps share and which is given back here.
        """
        if self.following:
            self._enqueue_in_turn(stream, alpha, beta, a, b, c, steps, scratch)
            return
        launch, at_alpha, at_beta = self.launch, *self.scalars_at
        at_a, at_b, at_c = self.at
        block = launch.take()
        words, floats = block.words, block.floats
        floats[2 * at_alpha], floats[2 * at_beta] = alpha, beta
        if scratch is not None:
            for at, address in zip(self.scratch_at, (scratch.workspace, scratch.tickets), strict=False):
                words[at] = address
        try:
            for to_a, to_b, to_c in steps:
                words[at_a], words[at_b], words[at_c] = a + to_a, b + to_b, c + to_c
                launch.enqueue(stream, block)
        finally:
            if scratch is not None:
                scratch.give_back()
            launch.give(block)

    def _enqueue_in_turn(
        self, stream: int, alpha: float, beta: float, a: int, b: int, c: int, steps: tuple[Step, ...],
        scratch: Scratch | None,
    ) -> None:  # fmt: skip
        """Queue all launches of each product before those of the next.

        Calls share the tickets of a stream, so no other call's launches may come between: a lock keeps them off.
        """
        launches = (self.launch, *self.following)
        blocks = [launch.take() for launch in launches]
        for block in blocks:
            words, floats = block.words, block.floats
            floats[2 * self.scalars_at[0]], floats[2 * self.scalars_at[1]] = alpha, beta
            if scratch is not None:
                for at, address in zip(self.scratch_at, (scratch.workspace, scratch.tickets), strict=False):
                    words[at] = address
        try:
            with _IN_TURN:
                for starts in steps:
                    for launch, block in zip(launches, blocks, strict=True):
                        for at, address, start in zip(self.at, (a, b, c), starts, strict=True):
                            block.words[at] = address + start
                        launch.enqueue(stream, block)
        finally:
            if scratch is not None:
                scratch.give_back()
            for launch, block in zip(launches, blocks, strict=True):
                launch.give(block)


class CudaGemm:
    """Products on one GPU. The plan for each shape is stored."""

    def __init__(self, ordinal: int) -> None:
        self.device = CudaDevice(ordinal)
        self.gpu: Gpu = gpu_of_facts(self.device.name, self.device.facts)
        self.scratch = ScratchMemory(self.device)
        self._plans: dict[tuple[Any, ...], Plan] = {}

    def plan(self, what: Stored, call: Call) -> Plan:
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
            choice = choice_for(call, what, self.gpu)
            usual = choice if aligned else choice_for(call, replace(what, a=0, b=0, c=0, distances=()), self.gpu)
            plan = replace(self._prepared(choice, p), any_alignment=usual.same_code(choice))
            if len(self._plans) >= _MOST_PLANS:
                self._plans.clear()
            self._plans[key] = plan
        _require(plan, what)
        return plan

    def _prepared(self, choice: Choice, problem: GemmProblem) -> Plan:
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
        needs = Needs(kernel.workspace_bytes(problem, parameters), kernel.tickets(problem, parameters))
        code = load(kernel, self.device, parameters)
        launch, *following = (self.device.words_launch(code, each) for each in instance.launches)
        alpha, a, b, beta, c = at
        return Plan(
            kernel=kernel, config=choice.config, launch=launch, at=(a, b, c), scalars_at=(alpha, beta),
            needs=needs if any(needs) else None, scratch_at=scratch_at, following=tuple(following),
            mask=kernel.align - 1 if kernel.align > FLOAT_BYTES else 0,
        )  # fmt: skip


def _require(plan: Plan, what: Stored) -> None:
    """Raise `UsageError` if the plan's kernel does not take the scalars or addresses of `what`."""
    kernel = plan.kernel
    if kernel.restrictions and (why := kernel.refusal(plan.config, GemmOp().scalars(what.problem))):
        raise UsageError(f"gemm: {kernel.id} does not take {what.problem.label}: {why}")
    if not what.begins_on(max(kernel.align, FLOAT_BYTES)):
        raise UsageError(f"gemm: {kernel.id} needs operands that begin on {kernel.align} bytes")


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
