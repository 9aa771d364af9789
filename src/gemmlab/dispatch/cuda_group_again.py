"""Launches of the groups of `gemmlab.gemm_group`, ready for any addresses; repeated groups are found by their layouts.

Like `cuda_again` for single calls: a group with the layouts of an earlier one needs only addresses, memory for the
results and the stream. Each call checks that no `out` overlaps another array. Groups with `c`, stacks or arrays of
several packages are checked each time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.arrays.mapped_file import span
from gemmlab.arrays.packages import LEGACY_STREAM, Package, memory_errors, package_of
from gemmlab.core.precision import FLOAT_BYTES
from gemmlab.devices.cuda import CudaDevice
from gemmlab.devices.cuda_code import WordsLaunch
from gemmlab.devices.cuda_driver import preserved_context
from gemmlab.dispatch.batches import ONE
from gemmlab.dispatch.call import Call
from gemmlab.dispatch.choice import VECTOR_BYTES
from gemmlab.dispatch.cuda_again import float32_scalars
from gemmlab.dispatch.cuda_gemm import CudaGemm
from gemmlab.dispatch.cuda_operands import Checked, Placed
from gemmlab.dispatch.cuda_plan import AnyPlan
from gemmlab.dispatch.group_calls import ranges_apart
from gemmlab.dispatch.request import Float32Array
from gemmlab.dispatch.scratch import Fresh, ScratchMemory
from gemmlab.ops.batch_records import GROUP_PRODUCT

_MOST_ENTRIES = 256
_ALPHA, _A, _B, _BETA, _C, _TABLE = 0, 1, 2, 3, 4, 7
"""Positions of arguments of the kernel `grouped`. `_TABLE` describes the products, with offsets from the addresses of
the first one.
"""
Addresses = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class GroupLaunch:
    """A launch that computes some or all products of a group, without addresses."""

    launch: WordsLaunch
    numbers: npt.NDArray[np.intp]
    """Indices, in the group, of the products in the launch's table, in its order."""


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """The launches that together compute a group's products, ready for any addresses."""

    launches: tuple[GroupLaunch, ...]

    def renumbered(self, numbers: Sequence[int]) -> GroupPlan:
        """Return the plan as part of a larger group, in which product i has the index `numbers[i]`."""
        whole = np.array(numbers, np.intp)
        return GroupPlan(tuple(GroupLaunch(one.launch, whole[one.numbers]) for one in self.launches))

    def enqueue(
        self, stream: int, alpha: float, beta: float, a: Addresses, b: Addresses, c: Addresses
    ) -> None:  # fmt: skip
        """Queue the launches on a stream of the current context.

        `a`, `b` and `c` have the addresses of the operands and result of each product of the group.
        """
        for part in self.launches:
            block = part.launch.take()
            words, floats = block.words, block.floats
            floats[2 * _ALPHA], floats[2 * _BETA] = alpha, beta
            table = np.frombuffer(words[_TABLE:], GROUP_PRODUCT)
            for name, word, places in (("a", _A, a), ("b", _B, b), ("c", _C, c)):
                own = places[part.numbers]
                words[word] = int(own[0])
                table[name][: own.size] = (own - own[0]) // FLOAT_BYTES
            part.launch.enqueue(stream, block)
            part.launch.give(block)


@dataclass(frozen=True, slots=True)
class AloneProduct:
    """A product of a group that has launches of its own."""

    plan: AnyPlan
    number: int
    """Its index in the group."""
    scratch: Fresh | None
    """Function that returns an array for the scratch memory; `None` if the launches need none."""


@dataclass(frozen=True, slots=True)
class _Entry:
    device: CudaDevice
    memory: ScratchMemory
    alone: tuple[AloneProduct, ...]
    plan: GroupPlan
    """The launches for all products but those in `alone`."""
    fresh: tuple[Callable[[], Any], ...]
    """Functions, one for each result, that return a new array for it."""
    stream: Callable[[], int]
    """Function that returns the current stream of the operands' package; 0 is the default stream."""
    swapped: npt.NDArray[np.bool_]
    """`Batch.swapped` of each product."""
    aligned: npt.NDArray[np.bool_]
    """True for products whose arrays began on `VECTOR_BYTES`: that decides whether a product is faster alone."""
    apart: Addresses
    """`_distances` of a group whose results were found to lie apart from all else."""
    spans: Addresses
    """Offsets of the first byte, and of the one after the last, from the addresses of all arrays: (2, 3, products)."""

    def enqueue(
        self, package: Package, stream: int, alpha: float, beta: float, a: Addresses, b: Addresses, c: Addresses
    ) -> bool:  # fmt: skip
        """Queue all launches; otherwise as `GroupPlan.enqueue`.

        Returns false if there was too little memory for a workspace; products may then have been queued.
        """
        for one in self.alone:
            needs, at = one.plan.needs, one.number
            try:
                scratch = None if needs is None else self.memory.take(needs, stream, package, one.scratch)
            except memory_errors():
                return False
            one.plan.enqueue(stream, alpha, beta, int(a[at]), int(b[at]), int(c[at]), ONE, scratch)
        self.plan.enqueue(stream, alpha, beta, a, b, c)
        return True

    def lies_apart(self, places: Addresses) -> bool:
        """Return whether results at these addresses share no memory with operands and each other. False may be wrong.

        `places` has the addresses of a, b and results: (3, products).
        """
        if np.array_equal(_distances(places), self.apart):
            return True
        low, high = places + self.spans
        results = np.zeros(places.shape, np.bool_)
        results[-1] = True
        return ranges_apart(low.ravel(), high.ravel(), results.ravel())


_entries: dict[tuple[Hashable, ...], _Entry] = {}
_packages: dict[type, Package] = {}


def again_group(
    a: Any, b: Any, out: Any, alpha: Any, beta: Any, trans_a: Any, trans_b: Any, precision: Any, reproducible: Any
) -> list[Any] | None:  # fmt: skip
    """Return the products of a group, in the arrays of `out` or, if it is `None`, as new arrays.

    `None` if no earlier group had arrays of these layouts, or if the call is unusual: it has to be checked first.
    Nothing is written then. `None` too if there is no memory for a workspace. Beta is 0, so all products can then be
    computed again.
    """
    targets = () if out is None else out
    if any(type(arrays) not in (list, tuple) for arrays in (a, b, targets)) or not a:
        return None
    if out is not None and len(targets) != len(a):
        return None
    kind = type(a[0])
    package = _packages.get(kind)
    if package is None or {*map(type, a), *map(type, b), *map(type, targets)} != {kind}:
        return None
    scalars = float32_scalars(alpha, beta)
    if scalars is None or scalars[1] or not all(type(flag) is bool for flag in (trans_a, trans_b, reproducible)):
        return None
    address, layout = package.address, package.layout
    try:
        how = (trans_a, trans_b, precision, reproducible)
        known = _entries.get((*(tuple(map(layout, arrays)) for arrays in (a, b, targets)), *how))
    except Exception:  # noqa: BLE001 - whatever a package says of an array without strides or memory, such as a sparse one
        return None
    if known is None:
        return None
    results = [*targets] or [fresh() for fresh in known.fresh]
    places = _places(address, a, b, results)
    if not np.array_equal(_aligned(places), known.aligned) or (places % FLOAT_BYTES).any():
        return None
    if targets and not known.lies_apart(places):
        return None
    first, second, third = places
    where = np.where(known.swapped, second, first), np.where(known.swapped, first, second), third
    stream = known.stream() or LEGACY_STREAM
    if known.device.is_current:
        queued = known.enqueue(package, stream, *scalars, *where)
    else:
        with preserved_context():
            known.device.activate()
            queued = known.enqueue(package, stream, *scalars, *where)
    return results if queued else None


def remember_group(
    calls: Sequence[Call], many: Sequence[Checked], results: Sequence[Placed], swapped: Sequence[bool], gemm: CudaGemm,
    plan: GroupPlan, alone: Sequence[tuple[int, AnyPlan]],
) -> None:  # fmt: skip
    """Store the plan for a group for `again_group`, if it holds for all later groups with the same layouts.

    The group must have one product of two matrices per call; `swapped` has `Batch.swapped` of each. `alone` has (index,
    plan) of each product that has launches of its own; `plan` computes the others.
    """
    if not all(own.free and own.mask < VECTOR_BYTES for _, own in alone):
        return
    one, package, pairs = calls[0], package_of(calls[0].a), list(zip(calls, many, strict=True))
    out = [call.out for call in calls if call.out is not None]
    if package is None or {type(x) for x in (*(x for call in calls for x in (call.a, call.b)), *out)} != {type(one.a)}:
        return
    if len(out) not in (0, len(calls)) or any(call.c is not None for call in calls):
        return
    # If operands had to be copied, their layouts do not determine the launch.
    if any(call.a is not after.call.a or call.b is not after.call.b for call, after in pairs):
        return
    a, b = ([call.a for call in calls], [call.b for call in calls])
    layouts = (tuple(map(package.layout, arrays)) for arrays in (a, b, out))
    places = _places(package.address, a, b, [result.array for result in results])
    spans = [
        [_span(view) for view in views]
        for views in ((after.operands.left for after in many), (after.operands.right for after in many),
                      (result.target for result in results))
    ]  # fmt: skip
    if len(_entries) >= _MOST_ENTRIES:
        _entries.clear()
    how = (bool(one.trans_a), bool(one.trans_b), one.precision, bool(one.reproducible))
    fresh = tuple(package.fresh(call.a, after.operands.shape) for call, after in pairs)
    own = tuple(
        AloneProduct(each, index, each.needs.fresh(package, one.a) if each.needs else None) for index, each in alone
    )
    _entries[(*layouts, *how)] = _Entry(
        gemm.device, gemm.scratch, own, plan, fresh, package.current_stream(one.a), np.array(swapped), _aligned(places),
        _distances(places), np.moveaxis(np.array(spans, np.int64), -1, 0),
    )  # fmt: skip
    _packages[type(one.a)] = package


def _places(address: Callable[[Any], int], *lists: Sequence[Any]) -> Addresses:
    """Return the addresses of the arrays of each list: a row for each."""
    return np.array([[address(x) for x in arrays] for arrays in lists], np.int64)


def _aligned(places: Addresses) -> npt.NDArray[np.bool_]:
    """Return for each product whether all its arrays begin on `VECTOR_BYTES`."""
    found: npt.NDArray[np.bool_] = (places % VECTOR_BYTES == 0).all(axis=0)
    return found


def _distances(places: Addresses) -> Addresses:
    """Return the bytes from the first array to every array: they decide whether arrays share memory."""
    distances: Addresses = places - places[0, 0]
    return distances


def _span(view: Float32Array) -> tuple[int, int]:
    """Return `span`; nothing for an empty array."""
    return span(view) if view.size else (0, 0)
