from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemmlab.core.errors import UsageError
from gemmlab.ops.gemm import GemmOp, GemmProblem
from gemmlab.ops.gemm_sizes import Products, parse_products
from gemmlab.ops.sizes import LARGEST_EXTENT, MOST_SIZES, parse_sizes

extents = st.integers(0, LARGEST_EXTENT)


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("256", [(256, 256, 256)]),
        ("256,512", [(256,) * 3, (512,) * 3]),
        ("256:512:128", [(256,) * 3, (384,) * 3, (512,) * 3]),
        ("256:500:128", [(256,) * 3, (384,) * 3]),
        ("7:7:1", [(7,) * 3]),
        ("1x2x3", [(1, 2, 3)]),
        ("1X2X3, 64 ,0x0x0", [(1, 2, 3), (64,) * 3, (0, 0, 0)]),
        ("8,8,8x8x8", [(8, 8, 8)]),
    ],
)
def test_the_grammar_by_example(text: str, shapes: list[tuple[int, ...]]) -> None:
    assert parse_sizes(text, 3) == shapes


@given(st.lists(st.tuples(extents, extents, extents), min_size=1, max_size=8))
def test_written_shapes_come_back_in_order_without_repeats(shapes: list[tuple[int, int, int]]) -> None:
    text = ",".join("x".join(map(str, shape)) for shape in shapes)
    assert parse_sizes(text, 3) == list(dict.fromkeys(shapes))


@given(st.integers(0, 5000), st.integers(0, 3000), st.integers(1, 500))
def test_a_range_is_every_step_up_to_and_with_its_stop(start: int, length: int, step: int) -> None:
    stop = start + length
    sizes = [shape[0] for shape in parse_sizes(f"{start}:{stop}:{step}", 1)]
    assert sizes == [n for n in range(start, stop + 1) if (n - start) % step == 0]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "empty part"),
        ("256,,512", "empty part"),
        ("-1", "'-1'"),
        ("12.5", "'12.5'"),
        ("1e3", "'1e3'"),
        ("abc", "'abc'"),
        ("\N{SUPERSCRIPT TWO}", "not a whole number"),
        ("\N{ARABIC-INDIC DIGIT THREE}", "not a whole number"),
        ("1x2", "2 extents, expected 3"),
        ("1x2x3x4", "4 extents"),
        ("1xx3", "''"),
        ("256:512", "START:STOP:STEP"),
        ("1:2:3:4", "START:STOP:STEP"),
        ("1:2:0", "step must be at least 1"),
        ("5:2:1", "STOP 2 lies below START 5"),
        ("1:99999999:1", f"more than {MOST_SIZES}"),
        ("2147483648", "largest extent"),
        ("9" * 5000, "not a whole number"),
        (",".join(f"{i}x1x1" for i in range(MOST_SIZES + 2)), f"more than {MOST_SIZES} sizes in all"),
    ],
)
def test_malformed_sizes_are_refused_by_name(text: str, named: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_sizes(text, 3)
    assert named in str(error.value)


@given(st.text(max_size=20))
def test_any_text_gives_shapes_or_a_usage_error(text: str) -> None:
    try:
        shapes = parse_sizes(text, 3)
    except UsageError:
        return
    assert shapes
    assert all(len(shape) == 3 and min(shape) >= 0 for shape in shapes)


def test_the_operation_makes_plain_problems_of_sizes() -> None:
    assert GemmOp().parse_sizes("4,1x2x3") == [GemmProblem(4, 4, 4), GemmProblem(1, 2, 3)]


@pytest.mark.parametrize(
    ("text", "products"),
    [
        ("128x40x50:nt", Products(GemmProblem(128, 40, 50, trans_b=True))),
        ("8:TN", Products(GemmProblem(8, 8, 8, trans_a=True))),
        ("8:lda+4", Products(GemmProblem(8, 8, 8, lda=12))),
        ("4x5x6:tt:ld+1", Products(GemmProblem(4, 5, 6, trans_a=True, trans_b=True, lda=5, ldb=7, ldc=6))),
        ("4x5x6:ldb+2:ldc+3", Products(GemmProblem(4, 5, 6, ldb=7, ldc=8))),
        ("16*512x64x512", Products(GemmProblem(512, 64, 512), 16)),
        ("16 * 8 : b0 : nt", Products(GemmProblem(8, 8, 8, trans_b=True), 16, "b")),
        ("3*1x2x3:a0", Products(GemmProblem(1, 2, 3), 3, "a")),
        ("1*8", Products(GemmProblem(8, 8, 8))),
    ],
)
def test_options_and_batches_by_example(text: str, products: Products) -> None:
    assert parse_products(text) == [products]


def test_options_hold_for_a_whole_range() -> None:
    assert parse_products("2*4:12:4:nt:ldc+1,4") == [
        *(Products(GemmProblem(n, n, n, trans_b=True, ldc=n + 1), 2) for n in (4, 8, 12)),
        Products(GemmProblem(4, 4, 4)),
    ]


def test_the_operation_takes_options_and_no_batches() -> None:
    assert GemmOp().parse_sizes("8:nt,8") == [GemmProblem(8, 8, 8, trans_b=True), GemmProblem(8, 8, 8)]
    with pytest.raises(UsageError, match="a batch is for the operation batch; write 4x5x6 nt here"):
        GemmOp().parse_sizes("2*4x5x6:nt")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("8:xx", "'xx' is no option; options are nn, nt, tn, tt; lda+4"),
        ("8:nt:16", "'16' is no option"),
        ("8:lda4", "'lda4' is no option"),
        ("8:ldd+4", "'ldd+4' is no option"),
        ("8:b0", "b0 is for a batch, as in 16*512x64x512:b0"),
        ("2*8:c0", "'c0' is no option"),
        ("8:nt:tn", "tn gives layout a second time"),
        ("8:ld+1:ldb+2", "ldb+2 gives ldb a second time"),
        ("2*8:a0:b0", "b0 gives shared a second time"),
        ("0*8", "1 to 2147483647 products, not 0"),
        ("2*3*8", "is not a whole number"),
        ("*8", "is not a whole number"),
        ("8:512", "START:STOP:STEP"),
        (",".join(f"{i}x1x1:nt" for i in range(MOST_SIZES + 2)), f"more than {MOST_SIZES} sizes in all"),
    ],
)
def test_malformed_options_are_refused_by_name(text: str, named: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_products(text)
    assert named in str(error.value)


@given(st.text("0123456789*x:,abcdlnt+^ ", max_size=24))
def test_any_text_gives_products_or_a_usage_error(text: str) -> None:
    try:
        found = parse_products(text)
    except UsageError:
        return
    assert found
    assert len(set(found)) == len(found)
