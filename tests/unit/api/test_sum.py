"""`gemmlab.sum`: any strides, any axes, as accurate as promised, the same bits on any number of threads."""

from __future__ import annotations

import threading
import tracemalloc
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import gemmlab
from gemmlab.codegen.columns import column_roundings
from gemmlab.codegen.nests import nest_roundings
from gemmlab.core.errors import ArgumentTypeError, UsageError
from gemmlab.ops.op import Float32Array

UNIT = 2.0**-24
RNG = np.random.default_rng(11)
CUBE = RNG.standard_normal((37, 45, 53)).astype(np.float32)
FOLDED = np.lib.stride_tricks.as_strided(np.zeros(200, np.float32), (45, 53), (4, 4))
MATRIX = RNG.standard_normal((300, 1100)).astype(np.float32)

VIEWS: dict[str, Callable[[], Float32Array]] = {
    "whole": lambda: CUBE,
    "backwards": lambda: CUBE[::-1, :, ::-1],
    "steps": lambda: CUBE[:, ::2, ::3],
    "axes turned": lambda: CUBE.transpose(2, 0, 1),
    "a part": lambda: CUBE[1:, 3:40, 5:],
    "broadcast": lambda: np.broadcast_to(CUBE[:1], CUBE.shape),
    "unaligned": lambda: np.frombuffer(b"x" + MATRIX.tobytes() + b"xyz", np.uint8)[1:-3].view(np.float32),
    "matrix": lambda: MATRIX,
    "transposed": lambda: MATRIX.T,
    "long": lambda: RNG.standard_normal(200_003).astype(np.float32),
}


def axes_of(ndim: int) -> list[Any]:
    return [None, -1, *(choice for count in range(ndim + 1) for choice in combinations(range(ndim), count))]


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("view", VIEWS)
def test_any_view_along_any_axes(view: str) -> None:
    x = VIEWS[view]()
    wide = x.astype(np.float64)
    for axis in axes_of(x.ndim):
        reference, magnitude = wide.sum(axis=axis), np.abs(wide).sum(axis=axis)
        found = gemmlab.sum(x, axis)
        assert np.shape(found) == np.shape(reference)
        assert found.dtype == np.float32
        terms = x.size // max(1, np.size(reference))
        bound = max(nest_roundings(terms), column_roundings()) * UNIT * magnitude
        assert (np.abs(found - reference) <= bound).all(), axis


@pytest.mark.parametrize("x", [CUBE, CUBE[:3, :4, :5]], ids=["compiled", "small"])
def test_axes_are_kept_and_results_put_where_numpy_does(x: Float32Array) -> None:
    for axis in axes_of(3):
        plain = gemmlab.sum(x, axis)
        for keepdims in (False, True):
            found = gemmlab.sum(x, axis, keepdims=keepdims)
            assert np.shape(found) == np.shape(x.sum(axis=axis, keepdims=keepdims))
            assert isinstance(found, np.ndarray if np.ndim(found) else np.float32)
            out = np.full((*np.shape(found), 2), np.nan, np.float32)[..., 0]
            assert gemmlab.sum(x, axis, out=out, keepdims=keepdims) is out
            assert out.tobytes() == found.tobytes() == plain.tobytes()


def test_out_may_be_part_of_what_is_summed() -> None:
    x = MATRIX.copy()
    expected = gemmlab.sum(x, 0)
    gemmlab.sum(x, 0, out=x[7])
    assert np.array_equal(x[7], expected)


@pytest.mark.parametrize("view", VIEWS)
def test_the_same_bits_on_any_number_of_threads(view: str) -> None:
    x = VIEWS[view]()
    for axis in axes_of(x.ndim):
        one, two, seven = (np.asarray(gemmlab.sum(x, axis, threads=count)) for count in (1, 2, 7))
        assert one.tobytes() == two.tobytes() == seven.tobytes()


def test_nothing_is_zero_and_one_element_is_itself() -> None:
    assert gemmlab.sum(np.empty(0, np.float32)) == 0
    assert gemmlab.sum(np.empty((0, 3), np.float32), 0).tolist() == [0, 0, 0]
    assert gemmlab.sum(np.empty((3, 0), np.float32), 0).shape == (0,)
    assert gemmlab.sum(np.full((), 3.5, np.float32)) == 3.5
    assert isinstance(gemmlab.sum(CUBE), np.float32)


@pytest.mark.parametrize("n", [100, 70_000, 300_000])
@pytest.mark.filterwarnings("ignore:(invalid|overflow):RuntimeWarning")
def test_special_values_come_out_as_ieee_says(n: int) -> None:
    x = np.ones(n, np.float32)
    x[n // 2] = np.inf
    assert gemmlab.sum(x) == np.inf
    x[n // 3] = -np.inf
    assert np.isnan(gemmlab.sum(x))
    x[:] = 1e-40
    assert gemmlab.sum(x) == pytest.approx(n * 1e-40, rel=1e-4)
    x[:] = 3e38
    assert gemmlab.sum(x) == np.inf


def test_an_ill_conditioned_sum_is_as_good_as_its_terms() -> None:
    x = RNG.standard_normal(400_000).astype(np.float32) * 1000
    x[200_000:] = -x[:200_000]
    RNG.shuffle(x)
    x[7] += np.float32(0.25)
    wide = x.astype(np.float64)
    error = abs(float(gemmlab.sum(x)) - wide.sum())
    assert error <= 150 * UNIT * np.abs(wide).sum()


def test_a_long_sum_is_no_worse_than_numpys() -> None:
    x = np.full(1 << 22, 0.1, np.float32)
    exact = float(x[0]) * x.size
    assert abs(float(gemmlab.sum(x)) - exact) <= max(abs(float(np.sum(x)) - exact), 20 * UNIT * exact)


@pytest.mark.parametrize("shape", [(2403, 3), (3, 2403), (2, 2403, 1), (900, 9), (8192, 1), (20, 20, 20), (5000, 2)])
def test_small_sums_along_axes_are_as_accurate_as_large_ones(shape: tuple[int, ...]) -> None:
    """Rows one after the other into the result would be off by hundreds of roundings."""
    x = np.full(shape, 0.1, np.float32)
    for axis in axes_of(len(shape)):
        terms = x.size // max(1, np.size(x.sum(axis=axis)))
        found, exact = gemmlab.sum(x, axis), float(x.flat[0]) * terms
        assert np.abs(found - exact).max() <= 110 * UNIT * exact


def test_a_broadcast_or_stepped_array_is_read_where_it_lies() -> None:
    one, row = np.float32(0.75), MATRIX[0]
    assert gemmlab.sum(np.broadcast_to(one, (1 << 40,))) == 0.75 * 2**40
    spread = np.broadcast_to(row, (1 << 30, row.size))
    assert np.array_equal(gemmlab.sum(spread, 0), row * np.float32(2**30))
    assert gemmlab.sum(spread) == pytest.approx(row.sum(dtype=np.float64) * 2**30, rel=1e-4)
    assert np.array_equal(gemmlab.sum(np.broadcast_to(row, (5, row.size)), 1), np.full(5, gemmlab.sum(row)))
    assert gemmlab.sum(np.broadcast_to(row[:, None], (row.size, 1 << 30)), 1, keepdims=True).shape == (row.size, 1)
    x = np.ones(1 << 22, np.float32)
    tracemalloc.start()
    for view in (
        x[::2],
        x[::-3],
        x.reshape(1 << 11, 1 << 11)[::2, ::2],
        x.reshape(4, 1 << 10, 1 << 10).transpose(2, 0, 1),
    ):
        for axis in axes_of(view.ndim):
            results = view.size // view.sum(axis=axis).size if axis != () else 1
            before = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            found = gemmlab.sum(view, axis)
            assert tracemalloc.get_traced_memory()[1] - before <= np.size(found) * 4 + 20_000
            assert (found == results).all()
    tracemalloc.stop()


@pytest.mark.parametrize("name", ["value", "flag"])
def test_fields_of_packed_records_are_read_where_they_lie(name: str) -> None:
    records = np.zeros(
        (300, 41), [("tag", np.uint8), ("value", np.float32), ("flag", np.float32), ("end", np.uint8, 3)]
    )
    records[name] = MATRIX[:, :41]
    for axis in axes_of(2):
        assert np.allclose(gemmlab.sum(records[name], axis), MATRIX[:, :41].sum(axis=axis, dtype=np.float64), atol=1e-2)


def test_axes_may_be_any_sequence_and_keepdims_any_flag() -> None:
    expected = gemmlab.sum(CUBE, (0, 1), keepdims=True)
    axes: tuple[Any, ...] = (range(2), [0, np.int64(1)], (-2, 0))
    flags: tuple[Any, ...] = (True, 1, np.True_, np.int8(1))
    for axis in axes:
        for keepdims in flags:
            assert np.array_equal(gemmlab.sum(CUBE, axis, keepdims=keepdims), expected)


def test_an_axis_that_is_no_whole_number_is_refused_after_one_that_is() -> None:
    gemmlab.sum(CUBE, 1)
    gemmlab.sum(CUBE, (0, 1))
    wrong: list[Any] = [1.0, (0, 1.0)]
    for axis in wrong:
        with pytest.raises(ArgumentTypeError, match="not a whole number"):
            gemmlab.sum(CUBE, axis)


@pytest.mark.parametrize("columns", [1, 2, 3, 5, 16, 17, 255, 1023, 1025, 3000])
@pytest.mark.parametrize("rows", [1, 2, 7, 8, 9, 31, 600])
def test_columns_of_any_width_and_rows_of_any_length(rows: int, columns: int) -> None:
    x = RNG.integers(-8, 9, (rows, 2 * columns)).astype(np.float32)
    for view in (x[:, :columns], x[:, ::2], x[:, ::-2], np.asfortranarray(x)[:, :columns], x[::-1, -columns:]):
        for threads in (1, 3):
            assert np.array_equal(gemmlab.sum(view, 0, threads=threads), view.sum(axis=0))
            assert np.array_equal(gemmlab.sum(view, 1, threads=threads), view.sum(axis=1))
            assert gemmlab.sum(view, threads=threads) == view.sum()


def test_input_is_left_alone_and_may_be_read_only() -> None:
    x = MATRIX.copy()
    x.flags.writeable = False
    before = x.tobytes()
    gemmlab.sum(x, 0)
    gemmlab.sum(x[:, ::2])
    assert x.tobytes() == before


@pytest.mark.parametrize(
    ("x", "options", "error", "said"),
    [
        ([1.0, 2.0], {}, ArgumentTypeError, "sum: x is builtins.list, not a NumPy array"),
        (np.ones(3), {}, ArgumentTypeError, "sum: x has dtype float64, not native float32"),
        (CUBE, {"axis": 3}, UsageError, "sum: axis 3 of an array of 3 axes"),
        (CUBE, {"axis": (0, -3)}, UsageError, "sum: an axis is there twice"),
        (CUBE, {"axis": 1.5}, ArgumentTypeError, "sum: axis is 1.5, not a whole number"),
        (np.ma.masked_array(CUBE, mask=CUBE > 0), {}, ArgumentTypeError, "sum: x is a masked array"),
        (CUBE, {"axis": 0, "out": np.ones((45, 53))}, ArgumentTypeError, "sum: out has dtype float64"),
        (CUBE, {"axis": 0, "out": CUBE[:, 0]}, UsageError, r"sum: out has shape \(37, 53\); the result has \(45, 53\)"),
        (CUBE, {"axis": 0, "out": np.broadcast_to(CUBE[0, 0], (45, 53))}, UsageError, "sum: out is read-only"),
        (CUBE, {"threads": 0}, UsageError, "sum: threads is 0; it must be at least 1"),
        (CUBE, {"keepdims": "no"}, ArgumentTypeError, "sum: keepdims is 'no'; it must be True or False"),
        (CUBE, {"keepdims": 2}, ArgumentTypeError, "sum: keepdims is 2; it must be True or False"),
        (CUBE, {"keepdims": None}, ArgumentTypeError, "sum: keepdims is None; it must be True or False"),
        (CUBE, {"keepdims": np.ones(2)}, ArgumentTypeError, r"sum: keepdims is array\(.*\); it must be True or False"),
        (CUBE, {"axis": True}, ArgumentTypeError, "sum: axis is True, not a whole number"),
        (CUBE, {"axis": [0, False]}, ArgumentTypeError, "sum: axis is False, not a whole number"),
        (CUBE, {"axis": "01"}, ArgumentTypeError, "sum: axis is '01', not a whole number"),
        (CUBE, {"axis": b"01"}, ArgumentTypeError, "sum: axis is b'01', not a whole number"),
        (CUBE, {"axis": 0, "out": FOLDED}, UsageError, r"sum: elements of out share memory .* \(strides \(4, 4\)\)"),
    ],
)
def test_what_is_wrong_is_said(x: Any, options: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        gemmlab.sum(x, **options)


def test_many_threads_may_call_at_once() -> None:
    x = RNG.standard_normal((400, 700)).astype(np.float32)
    expected = [np.asarray(gemmlab.sum(x, axis)).tobytes() for axis in (None, 0, 1)]
    wrong: list[int] = []

    def work() -> None:
        for _ in range(20):
            if [np.asarray(gemmlab.sum(x, axis)).tobytes() for axis in (None, 0, 1)] != expected:
                wrong.append(1)

    callers = [threading.Thread(target=work) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong


@pytest.mark.in_turns(20)
def test_products_and_sums_share_one_pool() -> None:
    a = RNG.standard_normal((300, 300)).astype(np.float32)
    assert np.allclose(gemmlab.sum(gemmlab.gemm(a, a, threads=2), threads=2), (a @ a).sum(), rtol=1e-3, atol=1e-1)
