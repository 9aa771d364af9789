"""Serve repeated calls: the result of checking and choosing is stored for each combination of array layouts.

Checking views, finding the GPU and choosing a kernel take far longer than launching it. They depend on layouts alone,
so a second call needs only addresses, memory for its result and the stream. Each call checks that `out` does not
overlap the operands. Unusual calls (another number type, a flag that is no bool, a `c` with another `out`) are left to
`cuda_calls`, errors included.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gemmlab.arrays.mapped_file import span
from gemmlab.arrays.packages import LEGACY_STREAM, Package, memory_errors, package_of
from gemmlab.core.argument_checks import float32_scalar
from gemmlab.devices.cuda import CudaDevice
from gemmlab.devices.cuda_driver import Driver, copier, preserved_context
from gemmlab.dispatch.batches import Batch, Step
from gemmlab.dispatch.call import Call
from gemmlab.dispatch.cuda_gemm import CudaGemm
from gemmlab.dispatch.cuda_operands import one_block
from gemmlab.dispatch.cuda_plan import AnyPlan
from gemmlab.dispatch.opaque_array import spread
from gemmlab.dispatch.request import Float32Array, Request
from gemmlab.dispatch.scratch import Fresh, ScratchMemory

_NUMBERS = frozenset((float, int, np.float32, np.float64))
_MOST_ENTRIES, _MOST_STEPS = 1024, 256
"""Most calls that are stored, and most launches of one that is. Preparing takes a small part of the time of a larger
batch.
"""


@dataclass(frozen=True, slots=True)
class _Entry:
    """The facts about one call that layouts, flags and names determine."""

    device: CudaDevice
    plan: AnyPlan
    fresh: Callable[[], Any]
    """Function that returns a new array for the result."""
    copy: Callable[[int, int, int], None] | None
    """Function (to, from, stream) that queues the copy of c into a new result; `None` if its package has to copy it."""
    stream: Callable[[], int]
    """Function that returns the current stream of the operands' package; 0 is the default stream."""
    steps: tuple[Step, ...]
    memory: ScratchMemory
    scratch: Fresh | None
    """Function that returns an array for the scratch memory; `None` if the launch needs none."""
    swapped: bool
    """`Batch.swapped` of the call."""
    near_a: tuple[int, int]
    """Bounds in bytes of the distance from `a` to `out` within which the two may overlap."""
    near_b: tuple[int, int]


_entries: dict[tuple[Hashable, ...], _Entry] = {}
_packages: dict[type, Package] = {}
"""Packages of the array types that calls have had so far."""


def again(
    a: Any, b: Any, c: Any, out: Any, alpha: Any, beta: Any, trans_a: Any, trans_b: Any, precision: Any, kernel: Any,
    reproducible: Any,
) -> Any:  # fmt: skip
    """Return the product, in `out` or a new array; `None` if no stored call fits, or the call has to be checked.

    `None` is returned before any of the caller's arrays is written. The call has no `config`. Arguments are passed one
    by one to save time; the caller makes a `Call` of them only after `None`.
    """
    kind = type(a)
    package = _packages.get(kind)
    if package is None or type(b) is not kind or not (out is None or type(out) is kind):
        return None
    if type(alpha) is not float or type(beta) is not float or alpha != 1.0 or (beta and beta != 1.0):
        scalars = float32_scalars(alpha, beta)
        if scalars is None:
            return None
        alpha, beta = scalars
    if type(trans_a) is not bool or type(trans_b) is not bool or type(reproducible) is not bool:
        return None
    added = None if c is out else c
    if beta if c is None else added is not None and (out is not None or type(c) is not kind):
        return None
    address, layout = package.address, package.layout
    try:
        left, right = address(a), address(b)
        place, form = (0, None) if out is None else (address(out), layout(out))
        start, source = (None, 0) if added is None else (layout(added), address(added))
        how = (trans_a, trans_b, precision, kernel, reproducible)
        known = _entries.get((layout(a), layout(b), start, form, *how))
    except Exception:  # noqa: BLE001 - whatever a package says of an array without strides or memory, such as a sparse one
        return None
    if known is None:
        return None
    if out is None:
        out = known.fresh()
        place = address(out)
        if beta and known.copy is None:
            package.put(out, added)
    elif known.near_a[0] < place - left < known.near_a[1] or known.near_b[0] < place - right < known.near_b[1]:
        return None
    if (left | right | place) & known.plan.mask:
        return None
    if known.device.is_current:
        return out if _queue(known, package, alpha, beta, left, right, place, source) else None
    with preserved_context():
        known.device.activate()
        return out if _queue(known, package, alpha, beta, left, right, place, source) else None


def _queue(
    known: _Entry, package: Package, alpha: float, beta: float, left: int, right: int, place: int, source: int
) -> bool:  # fmt: skip
    """Queue a call in the current context, with the addresses of a, b, the result and c; false if there is too little
    memory for its scratch.
    """
    stream, needs = known.stream() or LEGACY_STREAM, known.plan.needs
    try:
        scratch = None if needs is None else known.memory.take(needs, stream, package, known.scratch)
    except memory_errors():
        return False
    if beta and known.copy is not None:
        known.copy(place, source, stream)
    first, second = (right, left) if known.swapped else (left, right)
    known.plan.enqueue(stream, alpha, beta, first, second, place, known.steps, scratch)
    return True


def remember(
    driver: Driver, call: Call, gemm: CudaGemm, plan: AnyPlan, steps: tuple[Step, ...], request: Request, batch: Batch
) -> None:  # fmt: skip
    """Store the facts found for a call for `again`, if they hold for all later calls with the same layouts.

    `steps` are the starts of the plan's launches. Entries of earlier calls are dropped if there are too many.
    """
    if call.config is not None:
        return
    package, added = package_of(call.a), None if call.c is call.out else call.c
    beside = call.a if call.out is None else call.out
    alike = {type(x) for x in (call.a, call.b, beside, added)} - {type(None)} == {type(call.a)}
    if package is None or not alike or (call.out is not None and added is not None):
        return
    by_name = call.kernel is None or type(call.kernel) is str
    if not (by_name and plan.free and len(steps) <= _MOST_STEPS):
        return
    forms = [None if x is None else package.layout(x) for x in (added, call.out)]
    if len(_entries) >= _MOST_ENTRIES:
        _entries.clear()
    how = (bool(call.trans_a), bool(call.trans_b), call.precision, call.kernel, bool(call.reproducible))
    _entries[package.layout(call.a), package.layout(call.b), *forms, *how] = _Entry(
        device=gemm.device, plan=plan, memory=gemm.scratch,
        scratch=plan.needs.fresh(package, beside) if plan.needs else None,
        fresh=package.fresh(beside, request.shape), stream=package.current_stream(beside),
        copy=None if added is None else _copy(driver, request),
        steps=steps, swapped=batch.swapped,
        near_a=_near(request.left, batch.fulls), near_b=_near(request.right, batch.fulls),
    )  # fmt: skip
    _packages[type(call.a)] = package


def _copy(driver: Driver, request: Request) -> Callable[[int, int, int], None] | None:
    """Return `_Entry.copy` for a call with c, also if its beta is 0: later ones may have another."""
    c = request.operands[2]
    added = None if c is None else spread(c.view, request.shape)
    return None if added is None or not one_block(added, None) else copier(driver, added.nbytes)


def float32_scalars(alpha: Any, beta: Any) -> tuple[float, float] | None:
    """Return alpha and beta rounded to float32; `None` if one has an unusual type, or is too large for `float`.

    Beta after rounding decides whether c is read.
    """
    if type(alpha) not in _NUMBERS or type(beta) not in _NUMBERS:
        return None
    try:
        return float32_scalar(alpha), float32_scalar(beta)
    except OverflowError:
        return None


def _near(operand: Float32Array, result: Float32Array) -> tuple[int, int]:
    """Return (low, high): the two overlap if the result begins more than `low` and less than `high` bytes behind the
    operand.
    """
    (low, high), (first, last) = span(operand), span(result)
    return low - last, high - first
