"""What `gemmlab.gemm` computes, for every shape, layout, scalar and place of the result."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import BroadcastableShapes, mutually_broadcastable_shapes

import gemmlab
from gemmlab.verify.check_call import check_callable

Array = npt.NDArray[np.float32]
NAN = np.float32(np.nan)


def whole(shape: tuple[int, ...], seed: int) -> Array:
    """Small integers: float32 sums of their products are exact in any order."""
    return np.random.default_rng([seed, *shape]).integers(-4, 5, shape).astype(np.float32)


@pytest.mark.in_turns(20)
@settings(max_examples=300, deadline=None)
@given(
    mutually_broadcastable_shapes(signature=np.matmul.signature, min_side=0, max_side=7, max_dims=3),
    st.integers(0, 3),
)
def test_shapes_are_those_of_matmul(shapes: BroadcastableShapes, seed: int) -> None:
    a, b = (whole(shape, seed) for shape in shapes.input_shapes)
    result = gemmlab.gemm(a, b)
    assert isinstance(result, np.ndarray)
    assert result.shape == shapes.result_shape
    assert np.array_equal(result, np.matmul(a, b))
    out = np.full(shapes.result_shape, NAN)
    assert gemmlab.gemm(a, b, out=out) is out
    assert np.array_equal(out, result)


@pytest.mark.in_turns(20)
@settings(max_examples=150, deadline=None)
@given(st.data())
def test_views_of_any_strides_are_read_and_written_in_place(data: st.DataObject) -> None:
    m, n, k = (data.draw(st.integers(1, 40)) for _ in range(3))

    def view(rows: int, cols: int, label: str) -> tuple[Array, Array]:
        """A view of a larger array, and that array: any steps, either direction, either order."""
        steps = [data.draw(st.sampled_from([-3, -1, 1, 2]), f"{label} step") for _ in range(2)]
        if data.draw(st.booleans(), f"{label} turned"):
            base = whole((cols * 3 + 2, rows * 3 + 1), 1)
            return base.T[:: steps[0], :: steps[1]][:rows, :cols], base
        base = whole((rows * 3 + 2, cols * 3 + 1), 2)
        return base[:: steps[0], :: steps[1]][:rows, :cols], base

    a, _ = view(m, k, "a")
    b, _ = view(k, n, "b")
    out, memory = view(m, n, "out")
    before = memory.copy()
    start = out.copy()
    expected = 2 * (a @ b) - start
    assert gemmlab.gemm(a, b, alpha=2, beta=-1, c=out, out=out) is out
    assert np.array_equal(out, expected)
    out[...] = start
    assert np.array_equal(memory, before), "something beside the view was written"


@pytest.mark.in_turns(20)
def test_the_contract_in_all_layouts() -> None:
    report = check_callable(gemmlab.gemm, threads=3)
    assert report.passed, report.explain()


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("trans_a", [False, True, np.True_, 1])
@pytest.mark.parametrize("trans_b", [False, True, np.False_, 0])
@pytest.mark.parametrize("batch", [(), (3,)])
def test_flags_transpose_the_last_two_axes(trans_a: Any, trans_b: Any, batch: tuple[int, ...]) -> None:
    m, n, k = 5, 33, 7
    a, b = (
        whole((*batch, k, m) if trans_a else (*batch, m, k), 1),
        whole((*batch, n, k) if trans_b else (*batch, k, n), 2),
    )
    left, right = (a.swapaxes(-1, -2) if trans_a else a), (b.swapaxes(-1, -2) if trans_b else b)
    assert np.array_equal(gemmlab.gemm(a, b, trans_a=trans_a, trans_b=trans_b), left @ right)


def test_flags_leave_vectors_alone() -> None:
    a, x = whole((4, 6), 1), whole((4,), 2)
    assert np.array_equal(gemmlab.gemm(x, a, trans_a=True), x @ a)
    assert np.array_equal(gemmlab.gemm(a, x, trans_a=True, trans_b=True), a.T @ x)


@pytest.mark.parametrize("shape", [(), (1,), (9,), (5, 1), (5, 9), (1, 9), (3, 5, 9), (3, 1, 1)])
def test_c_broadcasts_to_the_result(shape: tuple[int, ...]) -> None:
    a, b, c = whole((3, 5, 4), 1), whole((4, 9), 2), whole(shape, 3)
    assert np.array_equal(gemmlab.gemm(a, b, alpha=2, beta=0.5, c=c), 2 * (a @ b) + np.float32(0.5) * c)


def test_with_beta_0_c_is_not_read_but_must_fit() -> None:
    a, b = whole((5, 4), 1), whole((4, 9), 2)
    unread = np.full((5, 9), NAN)
    for beta in (0, 0.0, -0.0, np.float32(0)):
        assert np.array_equal(gemmlab.gemm(a, b, beta=beta, c=unread), a @ b)
        out = unread.copy()
        assert np.array_equal(gemmlab.gemm(a, b, beta=beta, c=out, out=out), a @ b)
    with pytest.raises(gemmlab.UsageError, match="does not broadcast"):
        gemmlab.gemm(a, b, beta=0.0, c=np.zeros((5, 8), np.float32))


@pytest.mark.parametrize("beta", [0.0, 1.0, -2.0])
@pytest.mark.parametrize("shape", [(5, 9), (1, 9), (5, 1), (70, 90)])
def test_with_alpha_0_neither_a_nor_b_is_read(shape: tuple[int, int], beta: float) -> None:
    a, b, c = np.full((shape[0], 4), NAN), np.full((4, shape[1]), NAN), whole(shape, 1)
    assert np.array_equal(gemmlab.gemm(a, b, alpha=0.0, beta=beta, c=c), beta * c)
    empty_a, empty_b = np.empty((shape[0], 0), np.float32), np.empty((0, shape[1]), np.float32)
    assert np.array_equal(gemmlab.gemm(empty_a, empty_b, alpha=NAN, beta=beta, c=c), beta * c)


@pytest.mark.parametrize("shape", [(0, 5, 7), (5, 0, 7), (5, 7, 0), (0, 0, 0), (1, 0, 1), (0, 1, 1), (1, 1, 0)])
def test_extents_of_zero(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    a, b = np.empty((m, k), np.float32), np.empty((k, n), np.float32)
    a.fill(1)
    b.fill(1)
    for threads in (None, 1, 2):
        assert np.array_equal(gemmlab.gemm(a, b, threads=threads), np.full((m, n), k, np.float32))
    c = np.full((m, n), 3, np.float32)
    assert np.array_equal(gemmlab.gemm(a, b, beta=2, c=c), np.full((m, n), k + 6, np.float32))


def test_nan_and_infinity_travel() -> None:
    a, b = whole((20, 30), 1), whole((30, 40), 2)
    a[3, 4], b[5, 6], a[7, 8], b[8, :] = np.nan, np.inf, np.inf, 0.0
    with np.errstate(invalid="ignore"):
        expected = a.astype(np.float64) @ b.astype(np.float64)
    result = gemmlab.gemm(a, b)
    assert np.isnan(result[7]).all(), "infinity times zero"
    assert np.array_equal(np.isnan(result), np.isnan(expected))
    assert np.array_equal(np.isinf(result), np.isinf(expected))
    assert np.isnan(gemmlab.gemm(whole((4, 4), 1), whole((4, 4), 2), alpha=NAN)).all()
    assert np.isnan(gemmlab.gemm(whole((4, 4), 1), whole((4, 4), 2), beta=NAN, c=whole((4, 4), 3))).all()
    assert np.isnan(gemmlab.gemm(a, b, alpha=0, beta=1, c=np.full((20, 40), NAN))).all()


@pytest.mark.parametrize("kind", ["fortran", "every other column", "upside down", "packed records", "rows with gaps"])
def test_the_result_goes_into_any_view(kind: str) -> None:
    m, n = 21, 35
    a, b = whole((m, 8), 1), whole((8, n), 2)
    records = np.zeros((m, n), [("flag", np.uint8), ("value", np.float32)])
    makers: dict[str, Callable[[], Array]] = {
        "fortran": lambda: np.zeros((n, m), np.float32).T,
        "every other column": lambda: np.zeros((m, 2 * n), np.float32)[:, ::2],
        "upside down": lambda: np.zeros((m, n), np.float32)[::-1],
        "packed records": lambda: records["value"],
        "rows with gaps": lambda: np.zeros((m, n + 3), np.float32)[:, :n],
    }
    out = makers[kind]()
    assert gemmlab.gemm(a, b, out=out) is out
    assert np.array_equal(out, a @ b)
    out[...] = 1
    assert gemmlab.gemm(a, b, beta=3, c=out, out=out) is out
    assert np.array_equal(out, a @ b + 3)
    assert not records["flag"].any()


def test_operands_that_repeat_or_lie_unaligned() -> None:
    a, b = whole((6, 9), 1), whole((9, 33), 2)
    for row in (
        np.broadcast_to(a[:1], (6, 9)),
        np.broadcast_to(a[:, :1], (6, 9)),
        np.broadcast_to(np.float32(2), (6, 9)),
    ):
        assert np.array_equal(gemmlab.gemm(row, b), np.array(row) @ b)
    memory = np.zeros(b.nbytes + 1, np.uint8)
    memory[1:] = b.view(np.uint8).ravel()
    shifted = memory[1:].view(np.float32).reshape(b.shape)
    assert not shifted.flags.aligned
    assert np.array_equal(gemmlab.gemm(a, shifted), a @ b)
    records = np.zeros((9, 33), [("flag", np.uint8), ("value", np.float32)])
    records["value"] = b
    assert np.array_equal(gemmlab.gemm(a, records["value"]), a @ b)


def test_an_interleaved_but_disjoint_out_is_allowed() -> None:
    memory = whole((24, 48), 1)
    a, out = memory[:, ::2], memory[:, 1::2]
    b = whole((24, 24), 2)
    expected = a @ b
    assert gemmlab.gemm(a, b, out=out) is out
    assert np.array_equal(out, expected)


def test_strides_beyond_32_bits() -> None:
    row = 5 << 30
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    try:
        memory = mmap.mmap(-1, 2 * row + 4096, flags=flags)
    except OSError as error:
        pytest.skip(f"no address space for it: {error}")
    far: Array = np.ndarray((3, 7), np.float32, memory, 0, (row, 4))
    far[...] = whole((3, 7), 1)
    b = whole((7, 20), 2)
    assert np.array_equal(gemmlab.gemm(far, b), np.array(far) @ b)
    assert np.array_equal(gemmlab.gemm(b, far, trans_a=True, trans_b=True), b.T @ np.array(far).T)
    out: Array = np.ndarray((3, 20), np.float32, memory, 1024, (row, 4))
    assert gemmlab.gemm(np.array(far), b, out=out) is out
    assert np.array_equal(out, np.array(far) @ b)


class Sub(np.ndarray[Any, Any]):
    pass


def test_subclasses_are_taken_and_plain_arrays_returned() -> None:
    a, b = whole((4, 5), 1), whole((5, 6), 2)
    result = gemmlab.gemm(a.view(Sub), b.view(Sub))
    assert type(result) is np.ndarray
    assert np.array_equal(result, a @ b)
    out = np.zeros((4, 6), np.float32).view(Sub)
    assert gemmlab.gemm(a, b, out=out) is out
    assert np.array_equal(out, a @ b)


def test_numbers_of_any_kind_are_scalars() -> None:
    a, b = whole((4, 5), 1), whole((5, 6), 2)
    for alpha in (2, 2.0, np.float64(2), np.float32(2), np.int8(2), np.array(2.0)):
        assert np.array_equal(gemmlab.gemm(a, b, alpha=alpha), 2 * (a @ b))


@pytest.mark.parametrize("shape", [(300, 280, 260), (1, 3000, 700), (3000, 1, 700), (33, 2500, 190), (2500, 17, 300)])
def test_the_number_of_threads_does_not_change_a_bit(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    rng = np.random.default_rng(7)
    for turned in (False, True):
        a, b = rng.random((m, k), np.float32), rng.random((k, n), np.float32)
        if turned:
            a, b = np.asfortranarray(a), np.asfortranarray(b)
        results = {gemmlab.gemm(a, b, alpha=0.3, threads=threads).tobytes() for threads in (1, 2, 3, 7, None, 1000)}
        assert len(results) == 1
