"""`gemmlab.gemm_group` of arrays on a GPU: products of different shapes in one launch.

A launch takes up to 64 products of one layout (`kernels/batch_cuda/grouped.cu`). Groups with more products, or with
operands stored in several layouts, take a launch for each 64 of a layout. The kernel computes multiply-adds, a block a
tile. A product that is faster alone, because it is large or because the others would wait for its long sums, has
launches of its own, as in a call of `gemmlab.gemm`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from gemmlab.arrays.on_gpu import DeviceArray
from gemmlab.core.log import LOG
from gemmlab.core.precision import FLOAT_BYTES
from gemmlab.core.program import Launch
from gemmlab.devices.cuda_code import CudaLoaded
from gemmlab.devices.cuda_driver import Driver, open_driver, order, preserved_context
from gemmlab.dispatch.batch_choice import faster_alone, group_config, longer_alone
from gemmlab.dispatch.batches import batch_of
from gemmlab.dispatch.call import Call
from gemmlab.dispatch.cuda_calls import queue
from gemmlab.dispatch.cuda_gemm import CudaGemm, gemm_on
from gemmlab.dispatch.cuda_group_again import GroupLaunch, GroupPlan, remember_group
from gemmlab.dispatch.cuda_operands import Checked, Placed, checked_call, one_ordinal, placed, stored_first
from gemmlab.dispatch.group_calls import product_of_group, require_apart
from gemmlab.dispatch.lending import hold
from gemmlab.dispatch.request import Float32Array
from gemmlab.dispatch.results import as_its_package_s
from gemmlab.dispatch.storage import Stored
from gemmlab.kernels.catalog import find_kernel
from gemmlab.kernels.instances import instance_for, load
from gemmlab.ops.batch import BatchOp, BatchProblem
from gemmlab.ops.batch_records import GROUP, GroupProduct, group_value
from gemmlab.ops.gemm_problem import GemmProblem

_KERNEL = "grouped"


class Member(NamedTuple):
    """A product of two matrices, with the addresses of its operands."""

    problem: GemmProblem
    a: int
    b: int
    c: int


class _Products(NamedTuple):
    """The products of two matrices that make up a result."""

    first: Stored | None
    """`None` for an empty result."""
    members: tuple[Member, ...]

    @property
    def swapped(self) -> bool:
        """True if the products are computed transposed, as `Batch.swapped`."""
        return self.first is not None and self.first.swapped


class _Ready(NamedTuple):
    """A call of the group whose result has a place."""

    one: Checked
    result: Placed
    products: _Products


def device_group(calls: Sequence[Call]) -> list[object]:
    """Return the results of `gemmlab.gemm_group` for arrays on a GPU. All calls are checked before any result is
    written.

    On a GPU without the kernel for groups, and if they are `faster_alone`, products run one after the other.
    """
    many = list[Checked]()
    for index, call in enumerate(calls):
        with product_of_group(index):
            many.append(checked_call(call))
    require_apart([(one.operands, one.target) for one in many])
    # An `out` that cannot be written to is refused before any is written.
    known = [None if one.target is None else _products(index, one, one.target) for index, one in enumerate(many)]
    with preserved_context():
        driver = open_driver()
        gemm = gemm_on(one_ordinal(driver, _labelled(many)))
        gemm.device.activate()
        results = [placed(driver, gemm.device, one) for one in many]
        ready = [
            _Ready(one, result, _products(index, one, result.target) if found is None else found)
            for index, (one, result, found) in enumerate(zip(many, results, known, strict=True))
        ]
        apart = _apart(gemm, ready)
        plans = [(index, queue(driver, gemm, ready[index].one, results[index])) for index in sorted(apart)]
        numbers = [index for index in range(len(ready)) if index not in apart]
        plan = _queue_together(driver, gemm, [ready[index] for index in numbers])
        alone = [(index, found) for index, found in plans if found is not None]
        if plan is not None and len(alone) == len(plans):
            swapped = [each.products.swapped for each in ready]
            remember_group(calls, many, results, swapped, gemm, plan.renumbered(numbers), alone)
    return [as_its_package_s(one.beside, result.array) for one, result in zip(many, results, strict=True)]


def _apart(gemm: CudaGemm, ready: Sequence[_Ready]) -> frozenset[int]:
    """Return the indices of the results that are computed as in calls of their own."""
    able = {index: each.products.first for index, each in enumerate(ready) if each.products.first is not None}
    found = {index for index, first in able.items() if faster_alone(ready[index].one.call, first, gemm.gpu)}
    rest = [index for index in able if index not in found]
    if rest:
        parts = [(able[index], len(ready[index].products.members)) for index in rest]
        found |= {rest[at] for at in longer_alone(ready[0].one.call, parts, gemm.gpu)}
    LOG.debug(
        "gemm_group on %s: products %s by themselves, %d in launches of many",
        gemm.gpu.name, sorted(found), len(able) - len(found),
    )  # fmt: skip
    return frozenset(found)


def _queue_together(driver: Driver, gemm: CudaGemm, ready: Sequence[_Ready]) -> GroupPlan | None:
    """Queue products in few launches on the stream of the first result, which waits for those of the others.

    Returns the plan of the launches; `None` if the results are not one product of two matrices each.
    """
    members = [member for each in ready for member in each.products.members]
    if not members:
        return None if ready else GroupPlan(())
    plan = _plan(gemm, members)
    stream, *rest = (each.result.stream for each in ready)
    others = {*rest} - {stream}
    for other in others:
        order(driver, stream, other)
    scalars = ready[0].one.operands
    places = (np.array([member[at] for member in members], np.int64) for at in (1, 2, 3))
    plan.enqueue(stream, scalars.alpha, scalars.beta, *places)
    for other in others:
        order(driver, other, stream)
    hold(driver, [array for each in ready for array in each.one.found.values()], stream)
    return plan if all(len(each.products.members) == 1 for each in ready) else None


def _labelled(many: Sequence[Checked]) -> dict[str, DeviceArray]:
    return {f"{name}[{index}]": array for index, one in enumerate(many) for name, array in one.found.items()}


def _products(index: int, one: Checked, target: Float32Array) -> _Products:
    """Return the products of two matrices that make up result `index` of the group; none for an empty one.

    Raises `UsageError` for a result that no kernel can write, and for operands that do not begin on 4 bytes.
    """
    if not target.size:
        return _Products(None, ())
    with product_of_group(index):
        batch = batch_of(one.operands, target)
        what = stored_first(batch, one.operands)
        what.require_begin_on(FLOAT_BYTES, _KERNEL)
    return _Products(what, tuple(Member(what.problem, what.a + a, what.b + b, what.c + c) for a, b, c in batch.steps))


def _plan(gemm: CudaGemm, members: Sequence[Member]) -> GroupPlan:
    """Return the launches for products."""
    config = group_config([(p.m, p.n, p.k) for p, *_ in members], gemm.gpu)
    return GroupPlan(tuple(_launch(gemm, members, numbers, config) for numbers in _parts(members)))


def _parts(members: Sequence[Member]) -> Iterator[list[int]]:
    """Yield the indices of the products of each launch, at most `GROUP` of one layout.

    The largest k comes first, so that no long sum begins when the others end.
    """
    for layout in dict.fromkeys(member.problem.layout for member in members):
        alike = [number for number, member in enumerate(members) if member.problem.layout == layout]
        alike.sort(key=lambda number: -members[number].problem.k)
        yield from (alike[first : first + GROUP] for first in range(0, len(alike), GROUP))


def _launch(
    gemm: CudaGemm, members: Sequence[Member], numbers: Sequence[int], config: Mapping[str, int]
) -> GroupLaunch:  # fmt: skip
    """Return a launch for the products with indices `numbers`, all of one layout, without the addresses."""
    tiles, products = 0, list[GroupProduct]()
    for number in numbers:
        p = members[number].problem
        products.append(GroupProduct(0, 0, 0, p.m, p.n, p.k, p.lda, p.ldb, p.ldc, first=tiles))
        tiles += -(-p.m // config["BM"]) * -(-p.n // config["BN"])
    loaded, one = _code(gemm, config, members[numbers[0]].problem.layout)
    nowhere, nothing = np.uint64(0), np.float32(0)
    args = (
        nothing, nowhere, nowhere, nothing, nowhere, np.int32(len(products)), np.uint32(1), group_value(products)
    )  # fmt: skip
    launch = gemm.device.words_launch(loaded, replace(one, args=args, grid=(tiles, 1, 1)))
    return GroupLaunch(launch, np.array(numbers, np.intp))


_codes: WeakKeyDictionary[CudaGemm, dict[tuple[object, ...], tuple[CudaLoaded, Launch]]] = WeakKeyDictionary()


def _code(gemm: CudaGemm, config: Mapping[str, int], layout: str) -> tuple[CudaLoaded, Launch]:
    """Return (loaded kernel, a launch of it for one small product) for a configuration and a layout, made once."""
    codes = _codes.setdefault(gemm, {})
    key = (layout, *sorted(config.items()))
    if key not in codes:
        kernel, device = find_kernel(_KERNEL), gemm.device
        scalars = BatchOp().scalars(BatchProblem(1, 1, 1).with_layout(layout))
        instance = instance_for(kernel, config, scalars)
        (one,) = instance.launches
        codes[key] = load(kernel, device, instance.parameters), one
    return codes[key]
