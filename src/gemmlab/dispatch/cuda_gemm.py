"""Products of two matrices on one GPU: for each shape what was chosen, built and loaded, ready to be launched again."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.core.dtypes import FLOAT_BYTES
from gemmlab.core.errors import UsageError
from gemmlab.devices.cuda import CudaDevice
from gemmlab.devices.cuda_code import WordsLaunch, argument_bytes
from gemmlab.devices.cuda_driver import context_kept
from gemmlab.dispatch.choice import Choice, choose, forced
from gemmlab.dispatch.naming import checked_config, named_kernel
from gemmlab.dispatch.store import shipped_table
from gemmlab.dispatch.stored import Stored
from gemmlab.dispatch.waves import Gpu, gpu_of_facts
from gemmlab.kernels.kernel import Kernel
from gemmlab.ops.gemm import GemmOp
from gemmlab.ops.gemm_problem import GemmProblem

Float32Array = npt.NDArray[np.float32]
_CHANGING = ("alpha", "a", "b", "beta", "c")
"""Arguments that differ from call to call; all others follow from shapes and strides."""
_MOST_PLANS = 1024


@dataclass(frozen=True, slots=True)
class Plan:
    """A launch for one shape, ready for other addresses and scalars."""

    kernel: Kernel
    config: Mapping[str, int]
    launch: WordsLaunch
    words: tuple[int, ...]
    at: Mapping[str, int]
    """Where among the words each of `_CHANGING` is."""

    @property
    def free(self) -> bool:
        """Whether it takes any scalars and addresses."""
        return not self.kernel.restrictions and self.kernel.align == FLOAT_BYTES

    def enqueue(self, stream: int, alpha: float, a: int, b: int, beta: float, c: int) -> None:
        """Put it on a stream of the current context."""
        words = list(self.words)
        for name, value in zip(_CHANGING, (_bits(alpha), a, b, _bits(beta), c), strict=True):
            words[self.at[name]] = value
        self.launch.enqueue(stream, *words)


class CudaGemm:
    """Products on one GPU. What was chosen and loaded for a shape is kept."""

    def __init__(self, ordinal: int) -> None:
        self.device = CudaDevice(ordinal)
        facts = self.device.facts
        self.gpu: Gpu = gpu_of_facts(
            self.device.name, facts["compute_capability"], int(facts["sms"]), max(1.0, facts["clock_khz"] / 1e3)
        )
        self._plans: dict[tuple[Any, ...], Plan] = {}

    def run(self, what: Stored, precision: str, kernel: object, config: object, stream: int) -> Plan:
        """Put one product on a stream. Raises `UsageError`, `DeviceError` and `CompileError`."""
        p, aligned = what.problem, what.aligned
        named = None if config is None else tuple(sorted(checked_config(config).items()))
        key = (p.m, p.n, p.k, p.lda, p.ldb, p.ldc, p.trans_a, p.trans_b, aligned, precision, str(kernel), named)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plan(self.choice(p, precision, kernel, config, aligned=aligned), p)
            if len(self._plans) >= _MOST_PLANS:
                self._plans.clear()
            self._plans[key] = plan
        _require(plan, what)
        plan.enqueue(stream, p.alpha, what.a, what.b, p.beta, what.c)
        return plan

    def choice(
        self, problem: GemmProblem, precision: str, kernel: object, config: object, *, aligned: bool
    ) -> Choice:  # fmt: skip
        """What runs for a problem on this GPU, and why."""
        table = shipped_table()
        if kernel is None and config is None:
            return choose(problem, self.gpu, table, precision=precision, aligned=aligned)
        return forced(kernel, config, problem, self.gpu, table, precision=precision, aligned=aligned)

    def _plan(self, choice: Choice, problem: GemmProblem) -> Plan:
        kernel, op = named_kernel(choice.kernel, "cuda"), GemmOp()
        scalars = op.scalars(problem)
        if why := kernel.refusal(choice.config, scalars):
            raise UsageError(f"gemm: {kernel.id} does not take {problem.label}: {why}")
        instance = kernel.instantiate(choice.config, scalars)
        # Textures are for a caller that keeps them; where a kernel gets none it loads.
        nothing = dict.fromkeys(("a", "b", "c", "texture(a)", "texture(b)"), np.uint64(0))
        launches = kernel.launches(instance, {**scalars, **nothing})
        at = {name: index for index, name in enumerate(kernel.args) if name in _CHANGING}
        if len(launches) != 1 or kernel.workspace_bytes(problem, instance) or set(at) != set(_CHANGING):
            raise UsageError(f"gemm: {kernel.id} is no kernel of one launch with all of {', '.join(_CHANGING)}")
        loaded = self.device.load(self.device.build(kernel.program(instance, self.device.target(instance))))
        words = tuple(
            int.from_bytes(argument_bytes(kernel.id, argument).tobytes(), "little") for argument in launches[0].args
        )
        return Plan(kernel, choice.config, self.device.words_launch(loaded, launches[0]), words, at)


def _require(plan: Plan, what: Stored) -> None:
    """What depends on scalars and addresses: of the catalog's kernels nothing does."""
    kernel = plan.kernel
    if kernel.restrictions and (why := kernel.refusal(plan.config, GemmOp().scalars(what.problem))):
        raise UsageError(f"gemm: {kernel.id} does not take {what.problem.label}: {why}")
    if kernel.align > FLOAT_BYTES and any(address % kernel.align for address in (what.a, what.b, what.c)):
        raise UsageError(f"gemm: {kernel.id} needs operands that begin on {kernel.align} bytes")


def _bits(value: float) -> int:
    return int.from_bytes(np.float32(value).tobytes(), "little")


_gemms: dict[int, CudaGemm] = {}
_lock = threading.Lock()


def gemm_on(ordinal: int) -> CudaGemm:
    """The products of one GPU. Raises `DeviceError` where there is none."""
    with _lock:
        if ordinal not in _gemms:
            _gemms[ordinal] = CudaGemm(ordinal)
        return _gemms[ordinal]


def choice_on(ordinal: int, what: Stored, precision: str, kernel: object, config: object) -> Choice:
    """What would run on a GPU of this machine. Raises `DeviceError` where there is none."""
    with context_kept():
        return gemm_on(ordinal).choice(what.problem, precision, kernel, config, aligned=what.aligned)
