"""`gemmlab.gemm_group` on the CPU: every product as `gemm` computes it, or none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gemmlab
from gemmlab import groups
from gemmlab.core.errors import ArgumentTypeError, UsageError

RNG = np.random.default_rng(3)
SHAPES = ((5, 7, 3), (1, 1, 1), (40, 33, 70), (0, 4, 4), (4, 4, 0))


def uniform(*shape: int) -> Any:
    return RNG.random(shape, dtype=np.float32) - np.float32(0.5)


def test_each_product_is_gemm_s_to_the_bit() -> None:
    a, b = [uniform(k, m) for m, _, k in SHAPES], [uniform(k, n) for _, n, k in SHAPES]
    c = [uniform(m, n) for m, n, _ in SHAPES]
    for given in ({}, {"c": c, "beta": 0.5}, {"reproducible": True}, {"threads": 1}):
        found = gemmlab.gemm_group(a, tuple(b), trans_a=True, alpha=2, **given)
        for index, result in enumerate(found):
            own = {**given, **({"c": c[index]} if "c" in given else {})}
            expected = gemmlab.gemm(a[index], b[index], trans_a=True, alpha=2, **own)
            np.testing.assert_array_equal(result, expected)


def test_into_out_that_is_c() -> None:
    a, b = [uniform(5, 7), uniform(4, 2)], [uniform(7, 3), uniform(2, 6)]
    out = [uniform(5, 3), uniform(4, 6)]
    expected = [x @ y + z for x, y, z in zip(a, b, out, strict=True)]
    found = gemmlab.gemm_group(a, b, c=out, out=out, beta=1.0)
    for one, given, right in zip(found, out, expected, strict=True):
        assert one is given
        np.testing.assert_allclose(one, right, rtol=1e-5, atol=1e-6)


def test_none_is_computed_where_one_is_refused() -> None:
    a, b = [uniform(5, 7) for _ in range(3)], [uniform(7, 3) for _ in range(3)]
    room = np.full((4, 5, 3), -7, np.float32)
    out = [room[0], room[1], room[2]]
    refused: list[tuple[type[Exception], str, dict[str, Any]]] = [
        (UsageError, "^gemm_group: product 2: op.a. of shape", {"a": [*a[:2], uniform(5, 6)]}),
        (ArgumentTypeError, "^gemm_group: product 1: b has dtype", {"b": [b[0], np.ones((7, 3)), b[2]]}),
        (UsageError, "product 2: out has shape", {"out": [*out[:2], room[3, :4]]}),
        (UsageError, r"out\[2\] shares memory with out\[1\]", {"out": [*out[:2], room[1]]}),
        (UsageError, r"out\[0\] shares memory with a\[2\]", {
            "a": [*a[:2], np.lib.stride_tricks.as_strided(room[0], (5, 7), (4, 4))]}),
        (UsageError, "product 0: threads", {"threads": 0}),
        (UsageError, "precision is 'half'", {"precision": "half"}),
        (UsageError, "out has 2 arrays, and a has 3", {"out": out[:2]}),
        (ArgumentTypeError, "b is numpy.ndarray; it must be a list", {"b": uniform(3, 7, 3)}),
    ]  # fmt: skip
    for error, words, given in refused:
        with pytest.raises(error, match=words):
            gemmlab.gemm_group(**{"a": a, "b": b, "out": out, **given})
    assert (room == -7).all()


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"alpha": "x"}, ArgumentTypeError, "alpha is 'x', not a real number"),
        ({"beta": None}, ArgumentTypeError, "beta is None, not a real number"),
        ({"trans_a": 2}, ArgumentTypeError, "trans_a is 2; it must be True or False"),
        ({"reproducible": "q"}, ArgumentTypeError, "reproducible is 'q'; it must be True or False"),
        ({"threads": 0}, UsageError, "threads is 0; it must be at least 1"),
    ],
)
def test_a_group_without_products_refuses_what_others_do(
    options: dict[str, Any], error: type[Exception], said: str
) -> None:
    assert gemmlab.gemm_group([], []) == []
    with pytest.raises(error, match=f"^gemm_group: {said}"):
        gemmlab.gemm_group([], [], **options)
    with pytest.raises(error, match=f"^gemm_group: product 0: {said}"):
        gemmlab.gemm_group([uniform(2, 2)], [uniform(2, 2)], **options)


def test_columns_of_one_array_lie_apart() -> None:
    room = np.full((5, 6), np.nan, np.float32)
    a, b = [uniform(5, 7) for _ in range(2)], [uniform(7, 3) for _ in range(2)]
    gemmlab.gemm_group(a, b, out=[room[:, :3], room[:, 3:]])
    np.testing.assert_allclose(room, np.hstack([a[0] @ b[0], a[1] @ b[1]]), rtol=1e-5, atol=1e-6)


def test_tensors_in_and_out() -> None:
    torch = pytest.importorskip("torch")
    a, b = [torch.rand(5, 7), torch.rand(2, 3)], [torch.rand(7, 3), torch.rand(3, 4)]
    for found, x, y in zip(gemmlab.gemm_group(a, b), a, b, strict=True):
        assert isinstance(found, torch.Tensor)
        torch.testing.assert_close(found, x @ y)


def test_products_are_not_checked_twice_without_out(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = [uniform(5, 7) for _ in range(3)], [uniform(7, 3) for _ in range(3)]
    expected = gemmlab.gemm_group(a, b, out=[np.empty((5, 3), np.float32) for _ in range(3)])
    monkeypatch.setattr(groups, "checked", lambda *_: pytest.fail("checked"))
    for found, right in zip(gemmlab.gemm_group(a, b), expected, strict=True):
        np.testing.assert_array_equal(found, right)
    with pytest.raises(UsageError, match=r"^gemm_group: product 1: op.a. of shape"):
        gemmlab.gemm_group([a[0], uniform(5, 6), a[2]], b)
