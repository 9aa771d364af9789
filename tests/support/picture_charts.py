"""What the tests of pictures look for: the tile of some code, words and rows of a chart."""

from __future__ import annotations

import re
from typing import Any

from gemmlab.plots.chart import render, specification
from gemmlab.sass.instruction import Instruction
from gemmlab.sass.register_tile import RegisterTile, register_tile


def found(instructions: tuple[Instruction, ...], arch: str = "sm_90") -> RegisterTile:
    tile = register_tile(instructions, arch)
    assert tile is not None
    return tile


def svg_texts(chart: object) -> list[str]:
    svg = render(specification(chart), ".svg").decode()  # type: ignore[arg-type]
    return re.findall(r"<text[^>]*>([^<]+)</text>", svg)


def rows_of(spec: dict[str, Any], layer: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = spec["datasets"][spec["layer"][layer]["data"]["name"]]
    return rows
