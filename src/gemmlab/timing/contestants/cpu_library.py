"""Contestants on a CPU: the libraries to compare with, and gemmlab's own library call."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gemmlab.core.precision import FLOAT32
from gemmlab.dispatch.cpu_precision import cpu_way
from gemmlab.dispatch.precision_rule import HIGHEST, request_for
from gemmlab.timing.arena import Float32Array
from gemmlab.timing.contestants.cblas import BlasLibrary
from gemmlab.timing.contestants.contestant import (
    Calls,
    Prepared,
    UnsupportedError,
    Work,
    address_of,
    call_for,
    in_turn,
)
from gemmlab.timing.contestants.places import GROUP, PRODUCTS, products_of, stored


class LibraryCall:
    """`gemmlab.gemm` or `gemmlab.sum` as a user calls it, argument handling included; `packed`: of a b that was packed
    before.
    """

    def __init__(self, precision: str = FLOAT32, *, reproducible: bool = False, packed: bool = False) -> None:
        self._packed = packed
        self._options = precision_options(precision, reproducible=reproducible)
        self._request = HIGHEST if reproducible else request_for(precision)
        self._precision = precision

    def prepare(self, work: Work) -> Prepared:
        calls = {**dict.fromkeys(PRODUCTS, self._product), "reduce": self._sum, GROUP: self._group}
        return Calls.of(call_for("gemmlab", work.op, calls)(work), work.before)

    @staticmethod
    def _sum(work: Work) -> Callable[[], object]:
        import gemmlab

        if work.problem["operator"] != "sum":
            raise UnsupportedError("gemmlab.sum adds")
        x, out = work.flat["x"], work.flat["out"]

        def call() -> None:
            out[0] = gemmlab.sum(x, threads=work.threads)

        return call

    def _product(self, work: Work) -> Callable[[], object]:
        import gemmlab

        gemm: Callable[..., object] = gemmlab.gemm
        m, n, k = (int(work.scalars[name]) for name in ("m", "n", "k"))
        way = cpu_way(self._request, (m, n, k))
        self._precision = way.kernel.precision_in(way.config)
        a, b, c = (host_array(work, name) for name in ("a", "b", "c"))
        options = {"threads": work.threads, **self._options, **library_options(work, c)}
        right = gemmlab.pack(b, trans_b=options.pop("trans_b", False)) if self._packed else b
        return partial(gemm, a, right, **options)

    def _group(self, work: Work) -> Callable[[], object]:
        return partial(library_group(work, host_array), threads=work.threads, **self._options)

    def facts(self) -> dict[str, Any]:
        from gemmlab.core.version import __version__

        return {
            "library": "gemmlab", "version": __version__, "thread_runtime": "own workers", "precision": self._precision,
        }  # fmt: skip


def host_array(work: Work, name: str) -> Float32Array:
    """Return an operand as it is stored: a matrix, or the matrices of a batch with a leading axis (`stored`)."""
    place = stored(work, name)
    words, strides = work.flat[name][place.first :], tuple(4 * step for step in place.strides)
    return np.lib.stride_tricks.as_strided(words, place.shape, strides)


def precision_options(precision: str, *, reproducible: bool) -> dict[str, Any]:
    """Return the options of `gemmlab.gemm` for the lowest precision that is allowed, and for reproducible results."""
    lowest = {} if precision == FLOAT32 else {"precision": request_for(precision)}
    return {**lowest, **({"reproducible": True} if reproducible else {})}


def library_options(work: Work, c: object) -> dict[str, Any]:
    """Return the options of `gemmlab.gemm` for a problem: `out=c`, and those that differ from the defaults."""
    options: dict[str, Any] = {"out": c, **{n: True for n in ("trans_a", "trans_b") if work.scalars.get(n, 0)}}
    if not work.plain:
        options |= {"alpha": work.scalars["alpha"], "beta": work.scalars["beta"]}
    return options | ({"c": c} if work.scalars["beta"] != 0 else {})


def library_group(work: Work, array: Callable[[Work, str], Any]) -> Callable[..., object]:
    """Return a call of `gemmlab.gemm_group` for the products of a group, with the operands that `array` returns."""
    import gemmlab

    group: Callable[..., object] = gemmlab.gemm_group
    products = products_of(work)
    a, b, c = ([array(one, name) for one in products] for name in ("a", "b", "c"))
    return partial(group, a, b, **library_options(products[0], c))


class NumpyCall:
    """`numpy.matmul(a, b, out=c)`, for a group in a loop; `numpy.sum(x, out=out)`, `numpy.max` or `numpy.min`."""

    def prepare(self, work: Work) -> Prepared:
        calls = {**dict.fromkeys(PRODUCTS, self._product), "reduce": self._reduction, GROUP: self._group}
        return Calls.of(call_for("numpy", work.op, calls)(work), work.before)

    @staticmethod
    def _product(work: Work) -> Callable[[], object]:
        if not work.plain:
            raise UnsupportedError("numpy.matmul has no alpha and beta")
        a, b, c = (host_array(work, name) for name in ("a", "b", "c"))
        a, b = (x.swapaxes(-1, -2) if work.scalars.get(f"trans_{name}", 0) else x for name, x in (("a", a), ("b", b)))
        return partial(np.matmul, a, b, out=c)

    def _group(self, work: Work) -> Callable[[], object]:
        return in_turn([self._product(one) for one in products_of(work)])

    @staticmethod
    def _reduction(work: Work) -> Callable[[], object]:
        if work.threads > 1:
            raise UnsupportedError("numpy adds on one thread only")
        reduce: Callable[..., object] = getattr(np, str(work.problem["operator"]))
        return partial(reduce, work.flat["x"], out=work.matrices["out"].reshape(()))

    def facts(self) -> dict[str, Any]:
        from threadpoolctl import threadpool_info

        pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
        blas = pools[0] if pools else {}
        return {
            "library": f"NumPy on {blas.get('internal_api', 'an unknown BLAS')}",
            "version": f"{np.__version__} on {blas.get('version', 'unknown')}",
            "core_type": blas.get("architecture", "unknown"),
            "thread_runtime": blas.get("threading_layer", "unknown"),
            "threads": blas.get("num_threads"),
        }


class BlasCall:
    """A BLAS library's own function for the product, called with arguments that were converted beforehand."""

    def __init__(self, path: str) -> None:
        self._library = BlasLibrary(path)

    def prepare(self, work: Work) -> Prepared:
        call_for("a BLAS", work.op, {"gemm": self._library.prepare})
        limit = 2**31 - 1
        if any(work.scalars[name] > limit for name in ("m", "n", "k", "lda", "ldb", "ldc")):
            raise UnsupportedError(f"an extent is above {limit}")
        addresses = {name: address_of(array) for name, array in work.flat.items()}
        return Calls.of(self._library.prepare(work.scalars, addresses), work.before)

    def facts(self) -> dict[str, Any]:
        return self._library.facts()
