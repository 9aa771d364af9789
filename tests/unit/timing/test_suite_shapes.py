"""The suite of shapes: its file is well formed, every shape has a source, and errors name what is wrong."""

from __future__ import annotations

import re

import pytest

from gemmlab.core.errors import UsageError
from gemmlab.ops.catalog import find_op
from gemmlab.timing.suite.shapes import read_suite, shipped_suite

SUITE = shipped_suite()
ISSUE = (
    "256,512,768,1000,1023,2047,4095,1024,2048,4096,8192,3072,6144,4096x11008x4096,1024x6000x2816,5124x700x2048,"
    "100000x32x100,128x4096x4096,1760x16x1760,1760x128x1760,35x700x2048,16x4096x4096,4096x16x4096,1x4096x4096,"
    "4096x1x4096,64x64x65536,256x256x16384,128x128x131072"
)
"""Shapes at which the library call was slow before the suite was made."""
GOOD = """
[family]
one = "first"
[[group]]
family = "one"
source = "a book"
shapes = ["64", "2*8x4x2:nt:b0"]
"""
LIST = GOOD.replace("source =", 'op = "group"\nsource =').replace('"2*8x4x2:nt:b0"', '"2*8/3x4x2:nt"')


def test_every_shape_has_a_source_and_a_family_with_a_description() -> None:
    for shape in SUITE.shapes:
        assert len(shape.source.split()) >= 4, shape.text
        assert shape.source.endswith((".", "row-major.")), shape.source
        assert SUITE.families[shape.family]
    assert set(SUITE.families) == {shape.family for shape in SUITE.shapes}


def test_the_suite_holds_what_it_was_asked_for() -> None:
    problems = {shape.problem for shape in SUITE.shapes if shape.op == "gemm"}
    assert set(find_op("gemm").parse_sizes(ISSUE)) <= problems
    batches = [shape.problem for shape in SUITE.shapes if shape.op == "batch"]
    assert {(batch.stride_a == 0, batch.stride_b == 0) for batch in batches} == {(0, 0), (0, 1), (1, 0)}
    assert {problem.layout for problem in problems} == {"nn", "nt", "tn", "tt"}
    assert {problem.m for problem in problems if problem.layout == "nt"} >= {1, 16, 128, 512, 2048, 8192}
    assert any(problem.lda > problem.k for problem in problems if not problem.trans_a)
    squares = {shape.problem.m for shape in SUITE.of_family("squares")}
    assert {64 << shift for shift in range(9)} <= squares
    assert {near for shift in range(8) for near in ((64 << shift) - 1, (64 << shift) + 1)} <= squares
    groups = [shape.problem for shape in SUITE.of_family("groups")]
    assert {shape.layout for group in groups for shape in group.shapes} == {"nn", "nt", "tn"}
    assert {len(group.shapes) > 1 for group in groups} == {False, True}
    assert 100 <= len(SUITE.shapes) <= 200


@pytest.mark.parametrize("family", list(SUITE.families))
def test_families_are_what_their_descriptions_say(family: str) -> None:
    shapes = SUITE.of_family(family)
    assert shapes
    assert {shape.op for shape in shapes} == {{"batches": "batch", "groups": "group"}.get(family, "gemm")}
    for problem in (shape.problem for shape in shapes if shape.op != "group"):
        m, n, k = problem.m, problem.n, problem.k
        plain = problem == problem.with_layout(problem.layout)
        match family:
            case "squares":
                assert m == n == k
                assert plain
                assert problem.layout == "nn"
            case "skinny":
                assert min(m, n) <= 128
                assert plain
            case "flat":
                assert k <= 176
                assert m * n > 2**20
            case "deep":
                assert k * 10 > 24 * max(m, n)
            case "recurrent":
                assert min(m, n, k) > 128
            case "strides":
                assert not plain


def test_the_whole_suite_fits_a_gpu_several_times() -> None:
    assert sum(find_op(shape.op).bytes_moved(shape.problem) for shape in SUITE.shapes) < 24e9
    assert sum(find_op(shape.op).flops(shape.problem) for shape in SUITE.shapes) < 20e12


def test_a_file_is_read_in_order() -> None:
    suite = read_suite(GOOD)
    assert [(s.text, s.family, s.source) for s in suite.shapes] == [
        ("64", "one", "a book"),
        ("2*8x4x2:nt:b0", "one", "a book"),
    ]
    assert [s.op for s in suite.shapes] == ["gemm", "batch"]
    groups = read_suite(LIST).shapes
    assert [(s.op, s.problem.label) for s in groups] == [("group", "64x64x64"), ("group", "2*8/3x4x2 nt")]
    assert suite.of_family(None) == suite.of_family("one") == suite.shapes
    with pytest.raises(UsageError, match="no family 'two' in the suite; families are one"):
        suite.of_family("two")


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("[family]", "[family", "shapes.toml: "),
        ('one = "first"', "one = 1", "family one needs a description"),
        ('one = "first"', 'two = "second"', "family 'one' is not described under [family]"),
        ('one = "first"', 'one = "first"\ntwo = "second"', "family two has no shapes"),
        ('source = "a book"', "", "group 1: source is missing"),
        ('source = "a book"', 'source = " "', "group 1: source is empty"),
        ('source = "a book"', 'source = "a book"\nnote = "x"', "group 1: unknown key 'note'"),
        ('source = "a book"', 'source = "a book"\nop = "sums"', "group 1: op is 'sums'; it is 'group', or left out"),
        ('source = "a book"', 'source = "a book"\nop = 1', "group 1: op is missing or of the wrong kind"),
        ('"64"', "64", "group 1: 64 is no shape"),
        ('"64"', '"64:zz"', "group 1: size '64:zz': 'zz' is no option"),
        ('"64"', '"64,65"', "'64,65' is 2 sizes"),
        ('"64"', '"64x0x64"', "'64x0x64' has nothing to compute"),
        ('"64"', '"2*8x4x2:b0:nt"', "'2*8x4x2:nt:b0' is the same product as '2*8x4x2:b0:nt'"),
        ('["64", "2*8x4x2:nt:b0"]', "[]", "shapes is empty"),
        ("[[group]]", "[group]", "group is missing or of the wrong kind"),
    ],
)
def test_a_malformed_file_is_refused_by_name(old: str, new: str, named: str) -> None:
    assert old in GOOD
    with pytest.raises(UsageError, match=re.escape(named)):
        read_suite(GOOD.replace(old, new, 1))
