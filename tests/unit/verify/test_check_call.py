from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemmlab.ops.gemm import GemmProblem
from gemmlab.verify.check_call import Call, check_callable, default_calls
from gemmlab.verify.check_report import CheckReport
from gemmlab.verify.views import VIEWS, WRITABLE_VIEWS, make_view

Array = npt.NDArray[np.float32]


def gemm(
    a: Array, b: Array, *, alpha: float = 1, beta: float = 0, c: Array | None = None, out: Array | None = None,
    trans_a: bool = False, trans_b: bool = False, threads: int | None = None,
) -> Array:  # fmt: skip
    del threads
    a = a.swapaxes(-1, -2) if trans_a else a
    b = b.swapaxes(-1, -2) if trans_b else b
    with np.errstate(all="ignore"):
        shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
        result = np.zeros(shape, np.float32)
        if beta != 0:
            assert c is not None
            result = np.float32(beta) * c
        if alpha != 0 and a.shape[-1]:
            result = np.float32(alpha) * (np.ascontiguousarray(a) @ np.ascontiguousarray(b)) + result
    if out is None:
        return result
    out[...] = result
    return out


PLAIN = ("plain", "plain", "plain")
SMALL = GemmProblem(5, 6, 7)


def judge(fn: Any, *calls: Call, threads: int = 1) -> CheckReport:
    return check_callable(fn, name="fn", calls=calls or None, threads=threads)


@pytest.mark.in_turns(20)
def test_a_right_call_passes_everything() -> None:
    report = judge(gemm, threads=2)
    assert report.passed, report.explain()
    assert report.cases > 700


def test_the_default_calls_use_every_layout_in_every_place() -> None:
    calls = list(default_calls(np.random.default_rng(0)))
    for position in (0, 1):
        assert {call.views[position] for call in calls} == set(VIEWS)
    for output in ("out", "in place"):
        assert {call.views[2] for call in calls if call.output == output} >= set(WRITABLE_VIEWS)
    assert any(0 in call.batch[0] for call in calls)


def wrong_for(condition: str) -> Any:
    def fn(a: Array, b: Array, **options: Any) -> Any:
        out = options.get("out")
        if condition == "strides" and min(a.strides) < 0:
            a = np.ascontiguousarray(a[::-1])
        if condition == "scribble" and a.flags.writeable and a.size:
            a[0, 0] = 0
        if condition == "raises":
            raise ValueError("no such thing")
        if condition == "threads" and options["threads"] > 1:
            b = b * np.float32(1 + 1e-7)
        result = gemm(a, b, **options)
        if condition == "float64":
            return result.astype(np.float64)
        if condition == "not stored" and out is not None:
            out[...] = 0
            return gemm(a, b, **{**options, "out": None})
        if condition == "beyond" and out is not None and out.base is not None and out.size:
            np.ndarray((1,), np.uint8, out.base.data if out.base.base is None else out.base.base.data)[0] = 1
        return "nothing" if condition == "type" else result

    return fn


@pytest.mark.parametrize(
    ("condition", "call", "said"),
    [
        ("strides", Call(SMALL, ("upside_down", "plain", "plain"), "returned"), "elements wrong"),
        ("scribble", Call(SMALL, PLAIN, "returned"), "bytes of a were changed"),
        ("threads", Call(SMALL, PLAIN, "out"), "differs in its bits"),
        ("float64", Call(SMALL, PLAIN, "returned"), "returned float64 (5, 6)"),
        ("raises", Call(SMALL, PLAIN, "returned"), "raised ValueError: no such thing"),
        ("type", Call(SMALL, PLAIN, "returned"), "returned str"),
        ("not stored", Call(SMALL, PLAIN, "out"), "the returned array differs from the one that was written"),
        ("beyond", Call(SMALL, PLAIN, "out"), "bytes of out outside the array were changed"),
    ],
)
def test_broken_calls_are_caught(condition: str, call: Call, said: str) -> None:
    assert judge(gemm, call, threads=2).passed
    report = judge(wrong_for(condition), call, threads=2)
    assert not report.passed
    assert said in report.explain()
    assert call.label in report.failures[0].problem


def test_writing_to_c_when_the_result_goes_elsewhere_is_caught() -> None:
    def fn(a: Array, b: Array, *, c: Array, **options: Any) -> Array:
        result = gemm(a, b, c=c, **options)
        c[0, 0] = 5
        return result

    report = judge(fn, Call(GemmProblem(5, 6, 7, beta=1), PLAIN, "out"))
    assert "bytes of c were changed" in report.explain()


def test_a_wrong_batch_is_caught() -> None:
    def fn(a: Array, b: Array, **options: Any) -> Array:
        result = gemm(a, b, **options)
        if result.ndim > 2 and result.shape[0] > 1:
            result[1] = result[0]
        return result

    assert not judge(fn, Call(SMALL, PLAIN, "returned", ((3,), ()))).passed


@given(
    st.sampled_from(VIEWS), st.lists(st.integers(0, 4), max_size=2), st.integers(0, 5), st.integers(0, 5),
    st.integers(0, 9),
)  # fmt: skip
def test_a_view_holds_its_contents_and_watches_the_rest(
    kind: str, batch: list[int], rows: int, cols: int, seed: int
) -> None:
    contents = np.random.default_rng(seed).random((*batch, rows, cols), dtype=np.float32)
    view = make_view(contents, kind)
    assert view.array.shape == contents.shape
    assert view.changed() == view.changed_outside() == 0
    if "repeated" not in kind:
        np.testing.assert_array_equal(view.array, contents)
    if kind in WRITABLE_VIEWS:
        view.array[...] = -1
        assert view.changed_outside() == 0
        assert (view.changed() > 0) == (contents.size > 0)
    view._memory[[0, -1]] = 1
    assert view.changed_outside() == 2


def test_views_have_the_strides_they_are_named_for() -> None:
    contents = np.arange(12, dtype=np.float32).reshape(3, 4)
    strides = {kind: make_view(contents, kind).array.strides for kind in VIEWS}
    assert strides == {
        "plain": (16, 4), "fortran": (4, 12), "wide_rows": (36, 4), "every_second_column": (36, 8),
        "upside_down": (-16, 4), "mirrored": (16, -4), "upside_down_mirrored": (-16, -4), "unaligned": (16, 4),
        "read_only": (16, 4), "one_row_repeated": (0, 4), "one_column_repeated": (4, 0),
    }  # fmt: skip
    assert not make_view(contents, "unaligned").array.flags.aligned
    assert not make_view(contents, "read_only").array.flags.writeable
