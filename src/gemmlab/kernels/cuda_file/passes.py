"""Repeated launches: the results of all blocks are the input of the next launch, until a launch has one block.

A kernel file states this as `again = { N = "blocks", x = "out" }`: the next launch's N is the number of blocks of this
one, and its x the output of this one, one float per block. Only the last launch writes the operation's own result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gemmlab.core.errors import UsageError
from gemmlab.core.expr import Expression
from gemmlab.core.precision import FLOAT_BYTES
from gemmlab.core.program import Config, Launch
from gemmlab.devices.device import Window
from gemmlab.kernels.cuda_file.header_facts import PHASE, Facts
from gemmlab.kernels.kernel import Bound
from gemmlab.kernels.names import problem_names
from gemmlab.ops.catalog import find_op

_ALIGNED = 256
"""Alignment of partial results in bytes, the same as that of an allocation."""
_Launches = Callable[[Config, Bound], list[Launch]]


class Passes:
    """The launches, the workspace and the roundings of a kernel that is launched again on its own results."""

    def __init__(self, facts: Facts, launches: _Launches) -> None:
        self._facts, self._launches = facts, launches
        self._extent = next(name for name, value in facts.again.items() if value == "blocks")
        self._input, self._result = next(pair for pair in facts.again.items() if pair[1] != "blocks")

    def launches(self, instance: Config, bound: Bound) -> list[Launch]:
        """Return the launches of one execution, in order; results of all but the last lie in the workspace."""
        extents, found = self._extents(instance, bound), list[Launch]()
        source, offset = bound[self._input], 0
        for extent, following in zip(extents, [*extents[1:], 0], strict=True):
            nbytes = FLOAT_BYTES * following
            target = Window(bound["workspace"], offset, nbytes) if following else bound[self._result]
            offset += _aligned(nbytes)
            here = {**bound, self._extent: np.int64(extent), self._input: source, self._result: target}
            found += self._launches(instance, here)
            source = target
        return found

    def workspace_bytes(self, problem: Any, instance: Config) -> int:
        """Return the bytes that the results of all launches but the last take."""
        extents = self._extents(instance, find_op(self._facts.op).scalars(problem))
        return sum(_aligned(FLOAT_BYTES * extent) for extent in extents[1:])

    def roundings(self, instance: Config, scalars: Mapping[str, Any]) -> int | None:
        """Return the sum of the roundings of all launches; `None` if the file states none."""
        stated = self._facts.roundings
        if stated is None:
            return None
        extents = self._extents(instance, scalars)
        each = (self._names(instance, scalars, extent) for extent in extents)
        return sum(_stated(stated, self._facts, names) for names in each)

    def _extents(self, instance: Config, scalars: Mapping[str, Any]) -> list[int]:
        """Return the extent of each launch in elements.

        Raises `UsageError` if a launch has more than one block and at least as many blocks as elements.
        """
        extents = [int(scalars[self._extent])]
        while True:
            blocks = _blocks(self._facts, self._names(instance, scalars, extents[-1]))
            if blocks <= 1:
                return extents
            if blocks >= extents[-1]:
                raise UsageError(f"{blocks} blocks for {extents[-1]} elements: launching again would never end")
            extents.append(blocks)

    def _names(self, instance: Config, scalars: Mapping[str, Any], extent: int) -> dict[str, float]:
        return {**problem_names({**scalars, self._extent: np.int64(extent)}), **instance}


def stated_size(facts: Facts, stated: Expression | None) -> Callable[[Any, Config], int]:
    """Return a function of a problem and an instance that returns the value of `stated`, a size of memory.

    The function returns 0 if `stated` is `None`.
    """
    if stated is None:
        return lambda _problem, _config: 0
    scalars = find_op(facts.op).scalars
    return lambda problem, instance: _stated(stated, facts, {**problem_names(scalars(problem)), **instance})


def single_roundings(facts: Facts) -> Callable[[Config, Mapping[str, Any]], int | None]:
    """Return a function of an instance and `Op.scalars` that returns the roundings stated for a kernel without `again`.

    The function returns `None` if the file states none.
    """
    stated = facts.roundings
    if stated is None:
        return lambda _instance, _scalars: None
    return lambda instance, scalars: _stated(stated, facts, {**problem_names(scalars), **instance})


def _stated(expression: Expression, facts: Facts, names: Mapping[str, float]) -> int:
    return expression.whole({**names, "blocks": _blocks(facts, names)})


def _blocks(facts: Facts, names: Mapping[str, float]) -> int:
    # The last phase computes the result, and its blocks share the work.
    last = {PHASE: facts.phases.whole(names) - 1, **names}
    return math.prod(expression.whole(last) for expression in facts.grid)


def _aligned(nbytes: int) -> int:
    return -(-nbytes // _ALIGNED) * _ALIGNED
