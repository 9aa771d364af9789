"""The pictures in the pages are what the kernels do today."""

from __future__ import annotations

import json

import pytest

from blocks import pictures
from gemmlab.plots.chart import specification

QUICK = [example for example in pictures.EXAMPLES if example.picture in {"lane_map", "reduction_tree", "bank_map"}]


@pytest.mark.parametrize("example", QUICK, ids=lambda example: example.path.stem)
def test_an_example_is_what_is_drawn_now(example: pictures.Example) -> None:
    drawn = json.loads(pictures.DRAWN.read_text(encoding="utf-8"))
    assert pictures.digest(specification(example.draw().chart)) == drawn[example.path.name]


def test_examples_are_there_and_small() -> None:
    paths = {example.path for example in pictures.EXAMPLES}
    assert paths == set(pictures.FOLDER.glob("*.svg"))
    assert set(json.loads(pictures.DRAWN.read_text(encoding="utf-8"))) == {path.name for path in paths}
    assert all(path.stat().st_size < 60_000 for path in paths)
