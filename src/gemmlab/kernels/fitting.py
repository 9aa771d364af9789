"""Problems that a kernel takes, made by the smallest changes to problems that it does not take.

A kernel without beta, for square matrices or for whole tiles refuses most of an operation's cases; what is left would
test little. So rows are packed, factors set, extents made equal or rounded up until the kernel takes the problem.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from typing import Any

from gemmlab.core.errors import UsageError
from gemmlab.core.program import Config
from gemmlab.kernels.kernel import Kernel
from gemmlab.kernels.names import OpNames, names_of
from gemmlab.ops.op import Op

_FACTORS = (1.0, 0.0)
_MULTIPLES = (2, 4, 8, 16, 32, 64, 128, 256)


def fitted(kernel: Kernel, op: Op, config: Config, problems: Iterable[Any]) -> list[Any]:
    """Return each problem as the kernel takes it in `config`, in order and once, without those that cannot be made to
    fit.
    """
    found: dict[Any, None] = {}
    for problem in problems:
        like = _fit(kernel, op, config, problem)
        if like is not None:
            found[like] = None
    return list(found)


def _fit(kernel: Kernel, op: Op, config: Config, problem: Any) -> Any:
    best, broken = problem, len(kernel.refusals(config, op.scalars(problem)))
    for changed in _changes(names_of(op.name), problem) if broken else ():
        # Later changes build on earlier ones that helped.
        try:
            candidate = changed(best)
        except UsageError:
            # Not every change makes sense by itself: matrices beside each other need long rows.
            continue
        left = len(kernel.refusals(config, op.scalars(candidate)))
        if left < broken:
            best, broken = candidate, left
        if not broken:
            break
    return None if broken else best


def _changes(names: OpNames, problem: Any) -> Iterator[Any]:
    """Yield functions that make of a problem one that demands less of a kernel in one respect: none if its extents are
    no fields of it.
    """
    if not names.extents or not {*names.extents} <= {each.name for each in fields(problem)}:
        return
    packed = {name: 0 for name in names.whole if name.startswith("ld")}
    for name in packed:
        yield lambda p, name=name: replace(p, **{name: 0})
    for name in names.real:
        for factor in _FACTORS:
            yield lambda p, name=name, factor=factor: replace(p, **{name: factor})
    volume = 1
    for name in names.extents:
        volume *= getattr(problem, name)
    # A square of the same amount of work: one as long as a long row would take far too long.
    edge = round(volume ** (1 / len(names.extents)))
    yield lambda p: replace(p, **packed, **dict.fromkeys(names.extents, edge))
    for multiple in _MULTIPLES:
        for which in (*((name,) for name in names.extents), names.extents):
            yield lambda p, which=which, multiple=multiple: replace(
                p, **packed, **{name: -(-getattr(p, name) // multiple) * multiple for name in which}
            )
