"""The blocks of docs/pictures.md: every kind of picture, and examples, each drawn by the command above it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blocks.markdown import markdown_table
from blocks.records import ROOT
from gemmlab.kernels.catalog import find_kernel
from gemmlab.plots.chart import save, specification
from gemmlab.plots.pictures.catalog import all_drawings, find_drawing, pictures_for
from gemmlab.plots.pictures.drawing import Picture, Subject

FOLDER = ROOT / "docs" / "pictures"
DRAWN = FOLDER / "drawn.json"


@dataclass(frozen=True, slots=True)
class Example:
    """One picture of one kernel, and what is to be seen on it."""

    kernel: str
    picture: str
    seen: str

    @property
    def path(self) -> Path:
        """Of its file."""
        return FOLDER / f"{self.kernel}-{self.picture}.svg"

    def draw(self) -> Picture:
        """Anew, from the kernel's code."""
        (picture,) = pictures_for(Subject(find_kernel(self.kernel)), [self.picture])
        return picture


EXAMPLES = (
    Example(
        "vector_load", "thread_data",
        "A warp fetches 16 rows of A's tile, two lanes a row, and a row of B's; a thread stores 8 x 8 neighbours of C, "
        "a warp 16 rows of the tile.",
    ),
    Example(
        "naive", "transactions",
        "A is one word for all lanes, B and C are four full sectors. Of `naive_strided` the same picture has 32 rows "
        "for A and for C.",
    ),
    Example(
        "vector_load", "bank_map",
        "Lanes 0 and 4 want different words of bank 0: with eight neighbours a thread an LDS.128 takes twice its "
        "wavefronts. Of `conflict_free` the picture has no red.",
    ),
    Example(
        "conflict_free", "lane_map",
        "Z-order: bits 1 and 16 of the lane move columns, 2, 4 and 8 rows; green are the bits of a thread's own pieces "
        "of 4 x 4, and how far these lie apart.",
    ),
    Example(
        "block_swizzle", "block_order",
        "Strips of eight tiles, up and down. What the 132 blocks read that an H200 runs at once stays at 8 columns of "
        "B: row by row they read all columns that there are.",
    ),
    Example(
        "reduce_unroll_last_warp", "reduction_tree",
        "Half of the threads are idle from the first step on; in the last warp, written without branches, the upper "
        "lanes add what nobody asks for.",
    ),
    Example(
        "reduce_sequential", "warps",
        "A tree by warps: four add in the first round, then two, then one, and all of them pay for each of nine "
        "barriers.",
    ),
    Example(
        "double_buffer", "pipeline",
        "While a k-block is multiplied the next one is on its way. Of `register_stage` the same picture has no "
        "multiply-add below the pale bar: it loads, stores, and only then computes.",
    ),
    Example(
        "conflict_free", "register_tile",
        "The order that ptxas chose: mostly along rows, so that `.reuse` keeps the row's factor; no multiply-add of "
        "this step has its sources in too few banks.",
    ),
    Example(
        "cache_block", "blocking",
        "The block of B in use, 64 x 128, is smaller than L1 and yet not all there: its rows lie 1 KiB apart, share "
        "half of the cache's sets, and push each other out. Packed blocks do not.",
    ),
)  # fmt: skip


def draw() -> None:
    """Every example, and what its picture says, so that a change of it is noticed."""
    FOLDER.mkdir(exist_ok=True)
    digests = {}
    for example in EXAMPLES:
        picture = example.draw()
        save(picture.chart, example.path)
        digests[example.path.name] = digest(specification(picture.chart))
    DRAWN.write_text(json.dumps(digests, indent=1) + "\n", encoding="utf-8")


def digest(spec: Mapping[str, Any]) -> str:
    """Of the boxes, lines and words of a picture; how they are rendered has no part in it."""
    charts = spec.get("vconcat", [spec])
    tables = {json.dumps(layer["data"]["values"], sort_keys=True) for chart in charts for layer in chart["layer"]}
    return hashlib.sha256("\n".join(sorted(tables)).encode()).hexdigest()


def kinds_block() -> str:
    """What there is to see of a kernel."""
    rows = [[f"`{drawing.name}`", drawing.title, drawing.caption] for drawing in all_drawings()]
    return markdown_table(["picture", "shows", "how to read it"], rows, texts=("shows", "how to read it"))


def examples_block() -> str:
    """The examples, each below its command."""
    parts = []
    for example in EXAMPLES:
        command = f"gemmlab explain {example.kernel} --pictures . --picture {example.picture}"
        parts += [f"```sh\n{command}\n```", f"![{find_drawing(example.picture).title}](pictures/{example.path.name})",
                  example.seen]  # fmt: skip
    return "\n\n".join(parts)


BLOCKS: Mapping[str, Callable[[], str]] = {"picture-kinds": kinds_block, "picture-examples": examples_block}
