"""`gemmlab.dask.gemm`: the graph of a product of Dask arrays."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np
from dask._task_spec import Task, TaskRef
from dask.array.core import unify_chunks
from dask.array.utils import meta_from_array
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from gemmlab.core.argument_checks import float32_scalar, thread_count
from gemmlab.core.errors import ArgumentTypeError, UsageError
from gemmlab.core.precision import PRECISIONS
from gemmlab.dask.order_of_sums import Chain, chains, groups
from gemmlab.dask.tasks import Settings, product, total
from gemmlab.dispatch.precision_rule import precision_for

_CALL = "gemmlab.dask.gemm"


def gemm(
    a: da.Array, b: da.Array, *, c: da.Array | None = None, alpha: float = 1.0, beta: float = 0.0,
    precision: str = "highest", threads: int | None = None,
) -> da.Array:  # fmt: skip
    """Return `alpha * a @ b + beta * c` as a Dask array, without computing it.

    `a` (m x k), `b` (k x n) and `c` (m x n) are two-dimensional float32 Dask arrays of any chunks, with blocks of NumPy
    or CuPy. Chunks along k become the same in `a` and `b`. The result has the chunks of `a` along m and of `b` along n.
    `c` is needed if `beta` is not 0, and is not read if `beta` is 0. `precision` is that of `gemmlab.gemm`.

    A task multiplies two blocks and adds the sum of the products before it along k, so a worker needs memory for four
    blocks. If C has few blocks, k is split between several such chains, whose sums are added in groups. That order
    depends on the chunks alone: the result has the same bits on any number of workers, threads and hosts. `threads`
    bounds the threads of one task; by default the tasks of a host share its cores.

    Raises `ArgumentTypeError` (a TypeError) for other arrays and dtypes, `UsageError` (a ValueError) for shapes that do
    not fit, a `beta` without `c`, chunks of unknown size, an unknown `precision` and a thread count below 1.
    """
    _check(a, b, c, beta)
    precision_for(precision, PRECISIONS)
    count = thread_count(_CALL, threads)
    settings = Settings(float32_scalar(alpha), float32_scalar(beta), precision, count, tasks_on_a_host())
    _, (a, b) = unify_chunks(a, "ik", b, "kj", warn=False)
    added = None if c is None or settings.beta == 0.0 else c.rechunk((a.chunks[0], b.chunks[1]))
    return _array(a, b, added, settings)


def tasks_on_a_host() -> int:
    """Return how many tasks the workers of the current Dask client run at the same time on one host, the most of all
    hosts; 0 without a client.
    """
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return 0
    try:
        workers = distributed.default_client().scheduler_info(n_workers=-1)["workers"].values()
    except ValueError:
        return 0
    busy = Counter[str]()
    for worker in workers:
        busy[worker["host"]] += worker["nthreads"]
    return max(busy.values(), default=0)


def _check(a: da.Array, b: da.Array, c: da.Array | None, beta: float) -> None:
    for name, x in (("a", a), ("b", b), *((("c", c),) if c is not None else ())):
        if not isinstance(x, da.Array):
            raise ArgumentTypeError(f"{_CALL}: {name} is {type(x).__qualname__}; it must be a dask.array.Array")
        if x.dtype != np.float32:
            raise ArgumentTypeError(f"{_CALL}: {name} is {x.dtype}; it must be float32: {name}.astype('float32')")
        if x.ndim != 2:
            raise UsageError(f"{_CALL}: {name} has {x.ndim} dimensions; it must have 2")
        if any(np.isnan(size) for sizes in x.chunks for size in sizes):
            raise UsageError(f"{_CALL}: {name} has chunks of unknown size; {name}.compute_chunk_sizes() finds them out")
    if a.shape[1] != b.shape[0]:
        raise UsageError(f"{_CALL}: a is {_shape(a)} and b is {_shape(b)}: k differs")
    if c is None and beta != 0:
        raise UsageError(f"{_CALL}: beta is {beta!r}, so c is needed")
    if c is not None and c.shape != (a.shape[0], b.shape[1]):
        raise UsageError(f"{_CALL}: c is {_shape(c)}; the product is {a.shape[0]}x{b.shape[1]}")


def _shape(x: da.Array) -> str:
    return "x".join(str(extent) for extent in x.shape)


def _array(a: da.Array, b: da.Array, added: da.Array | None, settings: Settings) -> da.Array:
    name = f"gemmlab-gemm-{tokenize(a, b, added, settings)}"
    rows, columns, steps = len(a.chunks[0]), len(b.chunks[1]), len(a.chunks[1])
    sums = chains(rows * columns, steps)
    levels = groups(len(sums))
    graph: dict[tuple[Any, ...], Task] = {}

    def add(key: tuple[Any, ...], function: Callable[..., Any], *arguments: Any, **named: Any) -> TaskRef:
        graph[key] = Task(key, function, *arguments, **named)
        return TaskRef(key)

    def chain_sum(i: int, j: int, chain: Chain) -> TaskRef | None:
        before = TaskRef((added.name, i, j)) if added is not None and chain.first == 0 else None
        for k in range(chain.first, chain.end):
            whole = len(sums) == 1 and k == chain.end - 1
            left, right = TaskRef((a.name, i, k)), TaskRef((b.name, k, j))
            place = (name, i, j) if whole else (f"{name}-part", i, j, k)
            before = add(place, product, left, right, before, settings, first=k == 0)
        return before

    for i in range(rows):
        for j in range(columns):
            heads = [chain_sum(i, j, chain) for chain in sums]
            for level, together in enumerate(levels):
                for group in together:
                    whole = level == len(levels) - 1
                    place = (name, i, j) if whole else (f"{name}-sum", i, j, f"{level}.{group[0]}")
                    heads[group[0]] = add(place, total, *(heads[one] for one in group))
    sources = [x for x in (a, b, added) if x is not None]
    return da.Array(
        HighLevelGraph.from_collections(name, graph, dependencies=sources), name, (a.chunks[0], b.chunks[1]),
        meta=meta_from_array(a._meta, ndim=2, dtype=np.float32),  # noqa: SLF001 - as Dask's own modules do
    )  # fmt: skip
