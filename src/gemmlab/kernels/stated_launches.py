"""The launches of a kernel of a CUDA file, by the facts stated about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gemmlab.core.errors import UsageError
from gemmlab.core.expr import Expression
from gemmlab.core.program import Config, Launch
from gemmlab.kernels.cuda_file.arguments import ArgumentMatch
from gemmlab.kernels.cuda_file.c_types import c_value
from gemmlab.kernels.cuda_file.header_facts import PHASE, Facts
from gemmlab.kernels.cuda_file.maps import OperandMap
from gemmlab.kernels.cuda_file.signature import Argument, Signature
from gemmlab.kernels.kernel import Bound
from gemmlab.kernels.names import map_over, problem_names


def launcher(
    kernel: str, facts: Facts, signature: Signature, matched: ArgumentMatch
) -> Callable[[Config, Bound], list[Launch]]:
    """Return a function of an instance and its arguments that returns the launches of one execution, in order.

    It returns none if there is nothing to compute, and raises `UsageError` for a grid, threads or shared memory that
    cannot be launched. `kernel` is the id in its messages.
    """
    maps = {map_over(one.operand): one for one in facts.maps}

    def launches(instance: Config, bound: Bound) -> list[Launch]:
        found = [launch_of(phase, instance, bound) for phase in range(_phases(kernel, facts, instance, bound))]
        # A grid without blocks is illegal, so such a phase is left out. The last phase computes the result: if it has
        # no blocks, there is nothing to compute, and the others are left out, too.
        return [launch for launch in found if min(launch.grid)] if min(found[-1].grid) else []

    def launch_of(phase: int, instance: Config, bound: Bound) -> Launch:
        names: dict[str, float] = {**problem_names(bound), **instance, PHASE: phase}
        try:
            grid, threads = dimensions(facts.grid, names), dimensions(facts.threads, names)
            smem_bytes = facts.smem_bytes.whole(names)
            pairs = zip(signature.args, matched.values, strict=True)
            args = tuple(_argument(argument, value, bound, names, maps) for argument, value in pairs)
        except UsageError as error:
            raise UsageError(f"{kernel}: {error}") from None
        if min(*grid, smem_bytes) < 0 or min(threads) < 1:
            what = f"grid {grid} of {threads} threads with {smem_bytes} bytes of shared memory"
            raise UsageError(f"{kernel}: {what} cannot be launched")
        return Launch(
            args, grid, threads, smem_bytes, early=facts.early and phase > 0, cooperative=facts.cooperative
        )  # fmt: skip

    return launches


def _phases(kernel: str, facts: Facts, instance: Config, bound: Bound) -> int:
    """Return the number of launches of one execution; `UsageError` if it is not a whole number of at least 1."""
    try:
        phases = facts.phases.whole({**problem_names(bound), **instance})
    except UsageError as error:
        raise UsageError(f"{kernel}: phases: {error}") from None
    if phases < 1:
        raise UsageError(f"{kernel}: phases = {facts.phases.text} gives {phases} launches; at least 1 is possible")
    return phases


def _argument(
    argument: Argument, value: str | Expression, bound: Bound, names: Mapping[str, float],
    maps: Mapping[str, OperandMap],
) -> Any:  # fmt: skip
    if isinstance(value, Expression):
        return c_value(argument, value(names))
    if value in maps:
        return maps[value].argument(bound[value], names)
    if argument.is_pointer or isinstance(bound[value], np.void):
        return bound[value]
    return c_value(argument, bound[value].item())


def dimensions(expressions: Sequence[Expression], names: Mapping[str, float]) -> tuple[int, int, int]:
    """Return x, y and z: the values of one to three expressions, and 1 for those that are missing."""
    x, y, z = (*(expression.whole(names) for expression in expressions), 1, 1, 1)[:3]
    return x, y, z
