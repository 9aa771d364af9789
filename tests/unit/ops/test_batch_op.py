"""The operation `batch`: its problems, its memory, and a reference that sees every wrong word."""

from __future__ import annotations

import numpy as np
import pytest

from gemmlab.core.errors import UsageError
from gemmlab.ops.batch import BatchOp, BatchProblem
from gemmlab.ops.batch_records import AXES, GROUP, GroupProduct, axes_value, group_value
from gemmlab.ops.in_rows import UNTOUCHED
from gemmlab.verify.elementwise import compare

OP = BatchOp()


def test_sizes_of_the_command_line() -> None:
    found = OP.parse_sizes("16*512x64x512,8*1024:nt:ldc+4,64,8*4x5x6:b0")
    turned = BatchProblem(1024, 1024, 1024, ldc=1028, trans_b=True, batch=8)
    shared = BatchProblem(4, 5, 6, batch=8, stride_b=0)
    assert found == [BatchProblem(512, 64, 512, batch=16), turned, BatchProblem(64, 64, 64), shared]
    assert [p.label for p in found] == [
        "16*512x64x512", "8*1024x1024x1024 nt ldc=1028", "1*64x64x64", "8*4x5x6 stride_b=0",
    ]  # fmt: skip
    for text in ("*4x4x4", "2*", "0*4", "x*4", "2*3*4"):
        with pytest.raises(UsageError):
            OP.parse_sizes(text)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"batch": -1}, "at least 0 products"),
        ({"stride_a": -2}, "stride_a = -2"),
        ({"stride_c": 0}, "results of 4 rows, 5 elements apart, overlap; it must be at least 20, or 5 if ldc"),
        ({"stride_c": 5}, "overlap"),
        ({"stride_c": 5, "ldc": 9}, "overlap"),
        ({"ldb": 3}, "ldb = 3 is shorter"),
    ],
)
def test_problems_that_make_no_sense(fields: dict[str, int], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        BatchProblem(4, 5, 6, **{"batch": 2, **fields})  # type: ignore[arg-type]


def test_fields_as_json() -> None:
    problem = BatchProblem(4, 5, 6, 0.5, batch=3, stride_a=0, trans_b=True)
    assert OP.problem_from_json(problem.to_json()) == problem
    with pytest.raises(UsageError, match="unknown field 'stride'"):
        OP.problem_from_json({**problem.to_json(), "stride": 1})
    with pytest.raises(UsageError, match=r"batch = 2\.5 is of the wrong kind"):
        OP.problem_from_json({**problem.to_json(), "batch": 2.5})


def test_work_and_bytes() -> None:
    problem = BatchProblem(4, 5, 6, batch=3)
    assert OP.flops(problem) == 3 * 2 * 4 * 5 * 6
    assert OP.bytes_moved(problem) == 3 * 4 * (24 + 30 + 20)
    assert OP.bytes_moved(BatchProblem(4, 5, 6, batch=3, stride_b=0)) == 4 * (3 * 24 + 30 + 3 * 20)


def test_memory_of_matrices_apart_and_beside_each_other() -> None:
    apart = BatchProblem(4, 5, 6, batch=3, stride_c=30, lda=7)
    assert [(o.rows, o.cols) for o in OP.operands(apart)] == [(1, 2 * 28 + 27), (1, 90), (1, 80)]
    beside = BatchProblem(4, 5, 6, batch=3, stride_c=5, ldc=16)
    assert OP.operands(beside)[2].cols == 2 * 5 + 3 * 16 + 5
    assert [o.cols for o in OP.operands(BatchProblem(4, 5, 6, batch=0))] == [0, 0, 0]


def test_the_reference_is_numpy_s_and_gaps_stay_as_they_are() -> None:
    problem = BatchProblem(4, 5, 6, 2.0, 0.5, batch=3, stride_c=30, trans_a=True)
    contents = OP.fill(problem, np.random.default_rng(0))
    a, b = (contents[name].reshape(3, 6, -1).astype(np.float64) for name in "ab")
    c = np.pad(contents["c"][0], (0, 10)).reshape(3, 30)
    expected = OP.reference(problem, contents)["c"]
    made = np.pad(expected.values[0], (0, 10)).reshape(3, 30)
    np.testing.assert_allclose(
        made[:, :20].reshape(3, 4, 5), 2 * a.transpose(0, 2, 1) @ b + c[:, :20].reshape(3, 4, 5) / 2
    )
    assert (made[:2, 20:] == UNTOUCHED).all()
    right = expected.values.astype(np.float32)
    assert compare("c", right, expected, 6).mismatch is None
    for word in (25, 50):
        wrong = right.copy()
        wrong[0, word] *= np.float32(1.00001)
        found = compare("c", wrong, expected, 6).mismatch
        assert found is not None
        assert (found.column, found.wrong) == (word, 1)


def test_what_is_not_read_is_nan() -> None:
    contents = OP.fill(BatchProblem(4, 5, 6, batch=2, stride_a=40, stride_c=40), np.random.default_rng(0))
    assert np.isnan(contents["a"][0, 24:40]).all()
    assert not np.isnan(contents["a"][0, 40:]).any()
    assert np.isnan(contents["c"][0, :20]).all()
    assert (contents["c"][0, 20:40] == UNTOUCHED).all()


def test_axes_lie_as_kernels_read_them() -> None:
    words = np.frombuffer(axes_value([(5, 1, 2, 3), (7, 2**40, 0, -6)]).tobytes(), np.int64)
    assert words.reshape(AXES, 4).tolist() == [[2**40, 0, -6, 7], [1, 2, 3, 5], [0, 0, 0, 1], [0, 0, 0, 1]]
    with pytest.raises(UsageError, match="5 leading axes; a launch takes 4"):
        axes_value([(2, 1, 1, 1)] * 5)


def test_a_group_lies_as_kernels_read_it() -> None:
    product = GroupProduct(-3, 2**40, 5, 1, 2, 3, 4, 6, 7, first=8)
    value = group_value([product, product]).tobytes()
    assert len(value) == 56 * GROUP
    assert np.frombuffer(value[56:80], np.int64).tolist() == [-3, 2**40, 5]
    assert np.frombuffer(value[80:112], np.int32).tolist() == [1, 2, 3, 4, 6, 7, 8, 0]
    assert not any(value[112:])
    with pytest.raises(UsageError, match="65 products in a group; a launch takes 64"):
        group_value([product] * 65)
