"""Groups of products: lists of arrays in, a list of arrays out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np

from gemmlab.api import checked, gemm, without_packed
from gemmlab.arrays.on_gpu import is_device_array
from gemmlab.arrays.on_host import host_views, is_host_array
from gemmlab.core.argument_checks import thread_count
from gemmlab.core.precision import FLOAT32
from gemmlab.dispatch.call import Call
from gemmlab.dispatch.group_calls import group_calls, product_of_group, require_apart
from gemmlab.dispatch.precision_rule import HIGHEST, precision_for
from gemmlab.dispatch.request import check_flags, checked_factors
from gemmlab.packs import Packed

_again: Callable[..., list[Any] | None] | None = None
"""The function that is tried first for arrays on a GPU; `None` until the first such call."""


def gemm_group(
    a: Sequence[Any],
    b: Sequence[Any],
    *,
    alpha: SupportsFloat = 1.0,
    beta: SupportsFloat = 0.0,
    c: Sequence[Any] | None = None,
    out: Sequence[Any] | None = None,
    trans_a: bool = False,
    trans_b: bool = False,
    threads: SupportsIndex | None = None,
    precision: str = HIGHEST,
    reproducible: bool = False,
) -> list[Any]:
    """Return the list of `gemm(a[i], b[i], c=c[i], out=out[i], ...)` for every i; on a GPU few launches compute all.

    `a` and `b`, and `c` and `out` if they are given, are lists or tuples of equal length. Shapes may differ from one
    product to the next. Arrays of one shape may lie anywhere in memory: such a group is a batch by pointers. `alpha`,
    `beta`, `trans_a`, `trans_b`, `threads`, `precision` and `reproducible` apply to all products, as in `gemm`; other
    arguments of `gemm` (`kernel`, `config`, those of products in pieces) do not exist here. If `beta` is 0, `c` may
    contain `None`.

    On a GPU a launch takes up to 64 products whose operands are stored in one layout; other groups take several. The
    table of products is part of the launch, so a group can be captured in a graph. Each sum is one chain of
    multiply-adds in the order of k, for any `precision`, except in products that are computed as in `gemm`: those that
    are faster in a call of their own, as with tensor cores, or whose long sums the others would wait for. The shapes of
    all products decide that. With `reproducible` every sum is such a chain. On a CPU, and on a
    GPU that does not run the kernel for groups, the products are computed in turn.

    Raises the errors of `gemm`, with the number of the product, `ArgumentTypeError` for operands that are no lists or
    tuples, and `UsageError` for lists of different lengths and for an `out` that shares memory with an array of another
    product. If one product is refused, no `out` is written.
    """
    global _again
    if _again is not None and threads is None is c:
        known = _again(a, b, out, alpha, beta, trans_a, trans_b, precision, reproducible)
        if known is not None:
            return known
    if precision != HIGHEST:
        precision_for(precision, (FLOAT32,))
    one = Call(None, None, None, None, alpha, beta, trans_a, trans_b, threads, precision, reproducible=reproducible)
    calls = group_calls(a, b, c, out, one)
    if not calls:
        with product_of_group(None):
            checked_factors(one)
            check_flags(one)
            thread_count("gemm", threads)
        return []
    if any(is_device_array(array) for call in calls for array in call.arrays.values()):
        from gemmlab.dispatch.cuda_group_again import again_group
        from gemmlab.dispatch.cuda_groups import device_group

        for index, call in enumerate(calls):
            with product_of_group(index):
                without_packed(call)
        _again = again_group
        return device_group(calls)
    if out is None and all(type(x) is np.ndarray for call in calls for x in (call.a, call.b)):
        # All results are new, so nobody sees those before the first product that `gemm` refuses.
        results = []
        for index, call in enumerate(calls):
            with product_of_group(index):
                results.append(_product(call))
        return results
    requests = []
    for index, call in enumerate(calls):
        with product_of_group(index):
            foreign = is_host_array(call.a) or is_host_array(call.b)
            arrays = {name: array for name, array in call.arrays.items() if not isinstance(array, Packed)}
            views = host_views("gemm", arrays) if foreign else {}
            operands, target, _ = checked(call._replace(**views))
            requests.append((operands, target))
    require_apart(requests)
    return [_product(call) for call in calls]


def _product(call: Call) -> Any:
    return gemm(
        call.a, call.b, alpha=call.alpha, beta=call.beta, c=call.c, out=call.out, trans_a=call.trans_a,
        trans_b=call.trans_b, threads=call.threads, precision=call.precision, reproducible=call.reproducible,
    )  # fmt: skip
