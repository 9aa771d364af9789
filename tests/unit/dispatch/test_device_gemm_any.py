"""Any shapes, strides and flags on a GPU, looked at and then again: results are NumPy's, and gaps in `out` stay."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gemmlab
from support.gemm_on_gpu import Float32Array, played_driver, uniform
from support.gpu_arrays import Tensor, play_torch

FORMS = ("rows", "columns", "padded rows", "padded columns", "batch apart", "batch backwards", "batch inside")
BATCHES = (
    ((), ()),
    ((3,), ()),
    ((), (3,)),
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((2, 1), (1, 3)),
    ((1,), (2,)),
    ((2, 3), (1, 1)),
)


@pytest.fixture(autouse=True)
def _driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    play_torch(monkeypatch, 99)
    yield from played_driver(monkeypatch)  # type: ignore[misc]


def lay(x: Float32Array, form: str) -> Float32Array:
    """The same elements as they may lie in memory, with NaN in between."""
    *batch, m, n = x.shape
    if form == "columns":
        return np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)
    if form == "batch inside":
        # Row by row of all matrices.
        return np.ascontiguousarray(np.moveaxis(x, -2, 0)).transpose(*range(1, len(batch) + 1), 0, len(batch) + 1)
    if form == "batch backwards" and batch:
        return np.ascontiguousarray(x[::-1])[::-1]
    if form == "padded columns":
        room = np.full((*batch, n, m + 3), np.nan, np.float32).swapaxes(-1, -2)
    elif form == "batch apart":
        room = np.full((*(2 * extent for extent in batch), m, n), np.nan, np.float32)[
            (slice(None, None, 2),) * len(batch)
        ]
    else:
        room = np.full((*batch, m, n + (form == "padded rows")), np.nan, np.float32)
    part = room[..., :m, :n]
    part[...] = x
    return part


@st.composite
def products(draw: st.DrawFn) -> dict[str, Any]:
    m, n, k = (draw(st.integers(0, 5)) for _ in range(3))
    left, right = draw(st.sampled_from(BATCHES))
    trans_a, trans_b = draw(st.booleans()), draw(st.booleans())
    a, b = uniform(*left, *((k, m) if trans_a else (m, k))), uniform(*right, *((n, k) if trans_b else (k, n)))
    form = st.sampled_from(FORMS)
    return {
        "a": lay(a, draw(form)), "b": lay(b, draw(form)), "trans_a": trans_a, "trans_b": trans_b,
        "alpha": draw(st.sampled_from((1.0, 0.5, 0.0, -2))), "beta": draw(st.sampled_from((0.0, 1.0, -0.5))),
        "out": draw(st.sampled_from((None, *FORMS))), "shape": (*np.broadcast_shapes(left, right), m, n),
        "c": draw(st.sampled_from(("out", "whole", "row"))),
    }  # fmt: skip


@pytest.mark.in_turns(20)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(products())
def test_first_and_again(made: dict[str, Any]) -> None:
    a, b, beta, shape = made["a"], made["b"], made["beta"], made["shape"]
    op_a, op_b = (x.swapaxes(-1, -2) if made[flag] else x for x, flag in ((a, "trans_a"), (b, "trans_b")))
    for _ in range(2):
        out = None if made["out"] is None else Tensor(lay(uniform(*shape), made["out"]))
        room = None if out is None else whole(out.values)
        gaps = None if room is None else np.isnan(room)
        c = None
        if beta:
            c = (
                out
                if made["c"] == "out" and out is not None
                else Tensor(uniform(*shape[(made["c"] == "row" and -1) or 0 :]))
            )
        expected = made["alpha"] * (op_a @ op_b) + (0 if c is None else beta * c.values)
        found = gemmlab.gemm(
            Tensor(a), Tensor(b), alpha=made["alpha"], beta=beta, c=c, out=out,
            trans_a=made["trans_a"], trans_b=made["trans_b"],
        )  # fmt: skip
        assert out is None or found is out
        np.testing.assert_allclose(found.values, expected, rtol=1e-4, atol=1e-5)
        if room is not None:
            assert np.isnan(room[gaps]).all()


def whole(x: Float32Array) -> Float32Array:
    return x if x.base is None else whole(x.base)


@pytest.mark.parametrize(
    ("m", "n", "trans_a", "trans_b"), [(4, 2, True, False), (1, 5, False, True), (5, 1, True, True)]
)
def test_kernels_for_rows_and_columns_have_their_arguments(m: int, n: int, trans_a: bool, trans_b: bool) -> None:
    """`row_product` and `dot_product` take tickets and a workspace."""
    a, b = uniform(m, 3), uniform(3, n)
    given = [Tensor(np.ascontiguousarray(x.T) if turn else x) for x, turn in ((a, trans_a), (b, trans_b))]
    np.testing.assert_allclose(
        gemmlab.gemm(*given, trans_a=trans_a, trans_b=trans_b).values, a @ b, rtol=1e-4, atol=1e-5
    )
