"""Every picture of every kernel that has it: drawn, with its words, and small."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import pytest

from gemmlab.core.errors import UsageError
from gemmlab.plots.chart import render, specification
from gemmlab.plots.pictures.catalog import all_drawings, find_drawing, pictures_for
from gemmlab.plots.pictures.owners import Area, Piece, crowded, pieces, ranges
from support.cuda_source import needs_compiler
from support.paths import ROOT
from support.picture_subjects import subject

TRACED = ("thread_data", "tile_hierarchy", "lane_map", "block_order", "reduction_tree", "transactions", "bank_map")


def test_elements_become_rectangles() -> None:
    owners = {(row, col): "a" if col < 3 else "b" for row in range(4) for col in range(5)} | {(1, 1): "c"}
    assert pieces(owners) == [
        Piece("a", 0, 0, 1, 3), Piece("b", 0, 3, 4, 2), Piece("a", 1, 0, 1, 1), Piece("c", 1, 1, 1, 1),
        Piece("a", 1, 2, 1, 1), Piece("a", 2, 0, 2, 3),
    ]  # fmt: skip
    # What lies apart in a column stays apart.
    assert pieces({(0, 0): 1, (2, 0): 1}) == [Piece(1, 0, 0, 1, 1), Piece(1, 2, 0, 1, 1)]
    board = {(row, col): (row + col) % 2 for row in range(64) for col in range(64)}
    assert crowded(board) == Area(0, 0, 16, 8)
    assert ranges([7, 0, 1, 2, 9]) == "0-2, 7, 9"


def texts(chart: Any) -> str:
    svg = render(specification(chart), ".svg").decode()
    return " ".join(html.unescape(found) for found in re.findall(r"<text[^>]*>([^<]+)</text>", svg))


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize(
    ("kernel", "shown"),
    [
        ("vector_load", {"thread_data": "A loaded first: warps", "tile_hierarchy": "C: blocks of 128 x 128",
                         "lane_map": "column 64", "block_order": "264 of 529 blocks run at once",
                         "transactions": "16 sectors in 4 lines, 512 of 512 bytes used",
                         "bank_map": "8 wavefronts, 4 at best"}),
        ("reduce_shuffle", {"reduction_tree": "128 of 256", "transactions": "LDG.E reads x", "bank_map": "LDS"}),
    ],
)  # fmt: skip
def test_every_picture_that_applies_is_drawn_and_small(kernel: str, shown: dict[str, str]) -> None:
    of = subject(kernel)
    applying = [name for name in TRACED if find_drawing(name).applies(of)]
    assert set(applying) == set(shown)
    for picture in pictures_for(of, applying):
        assert len(json.dumps(specification(picture.chart))) < 60_000, picture.name
        assert shown[picture.name] in texts(picture.chart), picture.name
        assert picture.title
        assert picture.caption.endswith(".")


@pytest.mark.in_turns(20)
@needs_compiler
def test_pictures_of_many_pieces_are_small_too() -> None:
    # Its threads copy A element by element, and its blocks are the largest.
    of = subject("block_swizzle")
    for name in ("thread_data", "tile_hierarchy", "block_order"):
        assert len(json.dumps(specification(find_drawing(name).draw(of)))) < 60_000, name


def test_the_catalog() -> None:
    names = [drawing.name for drawing in all_drawings()]
    assert set(TRACED) <= set(names)
    assert len(set(names)) == len(names)
    assert [drawing.place for drawing in all_drawings()] == sorted(drawing.place for drawing in all_drawings())
    folder = ROOT / "src" / "gemmlab" / "plots" / "pictures"
    assert all((folder / f"{name}.py").exists() for name in names)
    with pytest.raises(UsageError, match="did you mean bank_map"):
        find_drawing("bank_mop")
    with pytest.raises(UsageError, match="packed: there is nothing to draw as bank_map"):
        pictures_for(subject("packed"), ["bank_map"])
