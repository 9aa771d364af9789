"""The division of C among threads: what the compiled code chooses, and what the forecast in docs/many-cores.md says."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import pytest

from gemmlab.codegen.thread_grid import division, emitted_row_multiple, row_multiple, worthwhile
from gemmlab.ir.compile import LoadedObject, compile_object, load_object
from gemmlab.ir.module import Module
from gemmlab.ir.target import host_target
from gemmlab.ir.types import I64, pointer
from scaling.model import BEFORE, K_BLOCK, LAYOUTS, NOW, TILE_COLS, TILE_ROWS, Product, divided


@cache
def _code() -> LoadedObject:
    module = Module(host_target())
    names = [(name, I64) for name in ("m", "n", "k", "threads", "element")]
    with module.function("divide", [*names, ("found", pointer(I64))], exported=True) as fn:
        m, n, k, threads, element, found = fn.args
        chosen = division(
            fn, (emitted_row_multiple(fn, TILE_ROWS, threads), TILE_COLS), (m, n, k), threads, element, K_BLOCK
        )
        for index, value in enumerate((chosen.rows, chosen.cols, chosen.shared)):
            found[index] = value
        fn.finish()
    with module.function("useful", [("threads", I64), ("work", I64)], I64, exported=True) as fn:
        fn.finish(worthwhile(fn, *fn.args))
    return load_object(compile_object(module.text(), module.target), ["divide", "useful"])


def _divide(product: Product, threads: int) -> tuple[int, int, bool]:
    signature = (*[ctypes.c_int64] * 5, ctypes.c_void_p)
    call: Any = ctypes.CFUNCTYPE(None, *signature)(_code().addresses["divide"])
    found = (ctypes.c_int64 * 3)()
    call(product.m, product.n, product.k, threads, LAYOUTS[product.layout], ctypes.addressof(found))
    return found[0], found[1], bool(found[2])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_compiled_division_is_the_forecast_one(layout: str) -> None:
    extents = (1, 31, 64, 257, 512, 1000, 1024, 2048, 4096)
    for product in [Product(m, n, k, layout) for m in extents for n in extents for k in (64, 1024, 4096)]:
        for threads in (2, 3, 7, 16, 61, 64, 128):
            assert _divide(product, threads) == divided(product, threads, NOW), (product, threads)


def test_rectangles_cover_c_and_are_no_more_than_the_threads() -> None:
    for m, n in ((1, 1), (5, 4000), (4000, 5), (1023, 1025), (100, 100)):
        for threads in (2, 5, 64, 1000):
            rows, cols, _shared = _divide(Product(m, n, 512), threads)
            assert rows % row_multiple(TILE_ROWS, threads) == 0
            assert cols % TILE_COLS == 0
            assert -(-m // rows) * -(-n // cols) <= threads


@pytest.mark.parametrize(("size", "threads", "most"), [(4096, 64, 8), (1024, 32, 8), (2048, 128, 8)])
def test_squares_are_not_cut_into_thin_rectangles(size: int, threads: int, most: int) -> None:
    product = Product(size, size, size)
    rows, cols, shared = _divide(product, threads)
    assert max(rows / cols, cols / rows) <= most
    assert not shared, "packing of rows hides behind multiply-adds"
    thin_rows, thin_cols, _shared = divided(product, threads, BEFORE)
    assert thin_rows / thin_cols > most, "this product was not cut into thin ones before"


def test_gaps_between_elements_of_b_are_packed_together() -> None:
    assert _divide(Product(4096, 256, 4096, "gaps"), 8)[2]
    assert not _divide(Product(100, 100, 100, "gaps"), 8)[2]


def test_a_small_product_takes_fewer_threads_and_two_are_never_too_many() -> None:
    counted: Any = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(_code().addresses["useful"])
    for threads in (1, 2, 3, 8, 64, 1000):
        counts = [counted(threads, work) for work in (1, 1 << 20, 1 << 24, 1 << 30, 1 << 40)]
        assert counts == [counted(threads, work) for work in (1, 1 << 20, 1 << 24, 1 << 30, 1 << 40)]
        assert counts == sorted(counts)
        assert counts[0] == min(threads, 2)
        assert counts[-1] == threads
