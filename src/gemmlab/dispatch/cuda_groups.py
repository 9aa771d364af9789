"""`gemmlab.gemm_group` of arrays on a GPU: products of different shapes in one launch.

A launch takes up to 64 products of one layout (`kernels/batch_cuda/grouped.cu`). Groups with more products, or with
operands stored in several layouts, take a launch for each 64 of a layout.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from gemmlab.arrays.on_gpu import DeviceArray
from gemmlab.core.errors import UsageError
from gemmlab.core.precision import FLOAT_BYTES
from gemmlab.core.program import Launch
from gemmlab.devices.cuda_code import CudaLoaded
from gemmlab.devices.cuda_driver import open_driver, order, preserved_context
from gemmlab.dispatch.batch_choice import group_config
from gemmlab.dispatch.batches import batch_of
from gemmlab.dispatch.call import Call
from gemmlab.dispatch.cuda_calls import device_gemm
from gemmlab.dispatch.cuda_gemm import CudaGemm, gemm_on
from gemmlab.dispatch.cuda_operands import Checked, checked_call, one_ordinal, placed, stored_first
from gemmlab.dispatch.groups import product_of_group, require_apart
from gemmlab.dispatch.lending import hold
from gemmlab.dispatch.request import Float32Array
from gemmlab.dispatch.results import as_its_package_s
from gemmlab.kernels.catalog import find_kernel
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


def device_group(calls: Sequence[Call]) -> list[object]:
    """Compute `gemmlab.gemm_group` for arrays on a GPU: check all calls, then write."""
    many = list[Checked]()
    for index, call in enumerate(calls):
        with product_of_group(index):
            many.append(checked_call(call))
    require_apart([(one.operands, one.target) for one in many])
    for index, one in enumerate(many):
        with product_of_group(index):
            # Finds what cannot be written to before anything is.
            list(_members(one, one.target) if one.target is not None else ())
    with preserved_context():
        driver = open_driver()
        gemm = gemm_on(one_ordinal(driver, _labelled(many)))
        gemm.device.activate()
        results = [placed(driver, gemm.device, one) for one in many]
        members = [member for one, result in zip(many, results, strict=True) for member in _members(one, result.target)]
        config = group_config([(p.m, p.n, p.k) for p, *_ in members], gemm.gpu)
        if config is None:
            return [device_gemm(one.call) for one in many]
        stream, others = results[0].stream, {result.stream for result in results[1:]} - {results[0].stream}
        for other in others:
            order(driver, stream, other)
        scalars = many[0].operands
        for part in _launches(members):
            _enqueue(gemm, part, config, scalars.alpha, scalars.beta, stream)
        for other in others:
            order(driver, other, stream)
        hold(driver, [array for one in many for array in one.found.values()], stream)
    return [as_its_package_s(one.beside, result.array) for one, result in zip(many, results, strict=True)]


def _labelled(many: Sequence[Checked]) -> dict[str, DeviceArray]:
    return {f"{name}[{index}]": array for index, one in enumerate(many) for name, array in one.found.items()}


def _members(one: Checked, target: Float32Array) -> Iterator[Member]:
    """Yield the products of two matrices that make a result. Raises `UsageError` for a result with gaps."""
    if not target.size:
        return
    batch = batch_of(one.operands, target)
    what = stored_first(batch, one.operands)
    if not what.begins_on(FLOAT_BYTES):
        raise UsageError(f"gemm: {_KERNEL} needs operands that begin on {FLOAT_BYTES} bytes")
    for a, b, c in batch.steps:
        yield Member(what.problem, what.a + a, what.b + b, what.c + c)


def _launches(members: Sequence[Member]) -> Iterator[list[Member]]:
    """Yield the products of each launch, the deepest first, so that no long one begins when the others end."""
    layouts = dict.fromkeys(member.problem.layout for member in members)
    for layout in layouts:
        alike = sorted((m for m in members if m.problem.layout == layout), key=lambda m: -m.problem.k)
        yield from (alike[first : first + GROUP] for first in range(0, len(alike), GROUP))


def _enqueue(
    gemm: CudaGemm, members: Sequence[Member], config: Mapping[str, int], alpha: float, beta: float, stream: int
) -> None:  # fmt: skip
    """Queue one launch for products of one layout."""
    base, tiles, products = members[0], 0, list[GroupProduct]()
    for p, *places in members:
        a, b, c = ((place - first) // FLOAT_BYTES for place, first in zip(places, base[1:], strict=True))
        products.append(GroupProduct(a, b, c, p.m, p.n, p.k, p.lda, p.ldb, p.ldc, first=tiles))
        tiles += -(-p.m // config["BM"]) * -(-p.n // config["BN"])
    loaded, one = _code(gemm, config, base.problem.layout)
    first_a, first_b, first_c = (np.uint64(place) for place in base[1:])
    args = (
        np.float32(alpha), first_a, first_b, np.float32(beta), first_c, np.int32(len(products)), np.uint32(1),
        group_value(products),
    )  # fmt: skip
    launch = gemm.device.words_launch(loaded, replace(one, args=args, grid=(tiles, 1, 1)))
    launch.enqueue(stream, launch.take())


_codes: WeakKeyDictionary[CudaGemm, dict[tuple[object, ...], tuple[CudaLoaded, Launch]]] = WeakKeyDictionary()


def _code(gemm: CudaGemm, config: Mapping[str, int], layout: str) -> tuple[CudaLoaded, Launch]:
    """Return the loaded kernel for a tile and a layout, with a launch of it for one small product."""
    codes = _codes.setdefault(gemm, {})
    key = (layout, *sorted(config.items()))
    if key not in codes:
        kernel, device = find_kernel(_KERNEL), gemm.device
        scalars = BatchOp().scalars(BatchProblem(1, 1, 1).with_layout(layout))
        instance = kernel.instantiate(config, scalars)
        (one,) = kernel.launches(instance, {**scalars, **dict.fromkeys("abc", np.uint64(0))})
        codes[key] = device.load(device.build(kernel.program(instance, device.target(instance)))), one
    return codes[key]
