"""The operation `group`: its sizes, its memory, and a reference that sees every wrong word."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gemmlab.core.errors import UsageError
from gemmlab.ops.gemm_problem import GemmProblem
from gemmlab.ops.group import GroupOp, GroupProblem
from gemmlab.ops.group_problem import ALIGNED
from gemmlab.ops.in_rows import UNTOUCHED
from gemmlab.verify.elementwise import compare

OP = GroupOp()


def test_sizes_of_the_command_line() -> None:
    found = OP.parse_sizes("3/17x8x4:nt,2*5/9x7x4/6:ld+1,64,4*2x3x5")
    assert [p.label for p in found] == [
        "3/17x8x4 nt", "2*5/9x7x4/6 lda+1 ldb+1 ldc+1", "64x64x64", "4*2x3x5",
    ]  # fmt: skip
    assert found[0] == GroupProblem((GemmProblem(3, 8, 4, trans_b=True), GemmProblem(17, 8, 4, trans_b=True)))
    assert [product.m for product in found[1].products] == [5, 5, 9, 9]
    assert found[3].products == (GemmProblem(2, 3, 5),) * 4
    assert [OP.problem_from_json(problem.to_json()) for problem in found] == found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("3/4x5/6/7x8", "'3/4x5/6/7x8': an extent is one number, or one for each of the 3 shapes"),
        ("3/4x5", "'3x5': 2 extents, expected 3"),
        ("3/x5x6", "is not a whole number"),
        ("0*5", "1 to 4096 products, not 0"),
        ("9999*5", "1 to 4096 products, not 9999"),
        ("3/4x5x6:zz", "'zz' is no option"),
        ("3/4x5x6:b0", "b0 is for a batch"),
        ("64:128:64", "'64:128:64': 64:128:64 is not one product"),
    ],
)
def test_malformed_sizes_are_named(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words.replace("*", r"\*")):
        OP.parse_sizes(text)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"shapes": [], "each": 1}, "1 to 4096 products, not 0"),
        ({"shapes": [{"m": 1, "n": 1, "k": 1}], "each": 1.5}, "shapes or each is missing or of the wrong kind"),
        ({"shapes": [5], "each": 1}, "shapes or each is missing or of the wrong kind"),
        ({"shapes": [{"m": 1, "n": 1, "k": 1}], "each": 1, "strides": 0}, "unknown field 'strides'"),
        ({"shapes": [{"m": 1, "n": 1, "k": 1, "beta": 2.0}], "each": 1}, "beta 0, not those of 1x1x1 beta=2"),
        ({"shapes": [{"m": 1, "n": 1, "k": 1}, {"m": 1, "n": 1, "k": 1, "trans_a": True}], "each": 1}, "not nn, tn"),
    ],
)
def test_problems_that_make_no_sense(data: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        OP.problem_from_json(data)


def test_work_and_bytes_are_those_of_all_products() -> None:
    (problem,) = OP.parse_sizes("2*4/7x5x6")
    assert OP.flops(problem) == OP.work(problem) == 2 * 2 * (4 + 7) * 5 * 6
    assert OP.bytes_moved(problem) == 2 * 4 * (24 + 30 + 20 + 42 + 30 + 35)
    assert OP.dot_length(problem) == 6


@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
def test_matrices_lie_apart_and_a_wrong_word_is_seen(layout: str) -> None:
    (problem,) = OP.parse_sizes(f"2*3/9x5x7:{layout}:ldc+1")
    contents = OP.fill(problem, np.random.default_rng(0))
    assert {name: values.shape[1] for name, values in contents.items()} == {
        operand.name: operand.cols for operand in OP.operands(problem)
    }
    starts = [one.first["c"] for one in problem.inside]
    assert all(start % ALIGNED == 0 for start in starts)
    expected = OP.reference(problem, contents)["c"]
    right = expected.values.astype(np.float32)
    assert compare("c", right, expected, 7).mismatch is None
    inside = np.zeros(right.shape[1], bool)
    for one in problem.inside:
        p, stored = one.product, {}
        for name, (rows, cols) in {"a": (p.m, p.k), "b": (p.k, p.n)}.items():
            turned = getattr(p, f"trans_{name}")
            shape = (cols, rows) if turned else (rows, cols)
            words = contents[name][0, one.first[name] :][: rows * cols].reshape(shape).astype(np.float64)
            stored[name] = words.T if turned else words
        at = one.first["c"] + np.arange(p.m)[:, np.newaxis] * p.ldc + np.arange(p.n)
        np.testing.assert_allclose(expected.values[0, at], stored["a"] @ stored["b"])
        inside[at] = True
    assert (expected.values[0, ~inside] == UNTOUCHED).all()
    for word in (starts[-1], int(np.flatnonzero(~inside)[0])):
        wrong = right.copy()
        wrong[0, word] *= np.float32(1.00001)
        assert compare("c", wrong, expected, 7).mismatch is not None


def test_every_layout_has_cases() -> None:
    found = list(OP.cases(("nn", "tt"), np.random.default_rng(0)))
    assert {shape.layout for problem in found for shape in problem.shapes} == {"nn", "tt"}
    assert max(len(problem.products) for problem in found) == 64
