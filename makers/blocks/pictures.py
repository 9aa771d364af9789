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
    """One picture of one kernel, and a text on what it shows (`seen`)."""

    kernel: str
    picture: str
    seen: str

    @property
    def path(self) -> Path:
        """The path of the picture's file."""
        return FOLDER / f"{self.kernel}-{self.picture}.svg"

    def draw(self) -> Picture:
        """Draw the picture from the kernel's code."""
        (picture,) = pictures_for(Subject(find_kernel(self.kernel)), [self.picture])
        return picture


EXAMPLES = (
    Example(
        "vector_load", "thread_data",
        "A warp fetches 16 rows of A's tile, with two lanes per row, and one row of B's tile. A thread stores 8 x 8 "
        "adjacent elements of C, and a warp stores 16 rows of the tile.",
    ),
    Example(
        "naive", "transactions",
        "All lanes read one word of A; B and C take four full sectors each. For `naive_strided` the same picture has "
        "32 "
        "rows for A and for C.",
    ),
    Example(
        "vector_load", "bank_map",
        "Lanes 0 and 4 need different words of bank 0: because each thread reads eight adjacent elements, an LDS.128 "
        "takes twice the ideal number of wavefronts. The picture of `conflict_free` has no red.",
    ),
    Example(
        "conflict_free", "lane_map",
        "Lanes are in z-order: bits 1 and 16 of the lane select columns; bits 2, 4 and 8 select rows. Green marks the "
        "bits of a thread's own pieces of 4 x 4, and the distance between these pieces.",
    ),
    Example(
        "block_swizzle", "block_order",
        "Blocks take strips of eight tiles, up and down. An H200 runs 132 blocks at once; in this order they read 8 "
        "columns of tiles of B. Row by row they would read all columns.",
    ),
    Example(
        "reduce_unroll_last_warp", "reduction_tree",
        "Half of the threads are idle from the first step on. In the last warp, which has no branches, the upper lanes "
        "add values that reach no result.",
    ),
    Example(
        "reduce_sequential", "warps",
        "Four warps add in the first round, then two, then one. All of them wait at each of nine barriers.",
    ),
    Example(
        "double_buffer", "pipeline",
        "The next k-block is loaded while this one is multiplied. The same picture of `register_stage` has no "
        "multiply-add below the pale bar: that kernel loads, stores, and only then computes.",
    ),
    Example(
        "warp_specialized", "stages",
        "Warp 0 copies, two warpgroups multiply in turns. Once the first stages are full, three or four of the four "
        "stay so, and warp 0 waits for room two thirds of its time: the tensor cores are the limit. In `tma_pipeline` "
        "one of the warps that multiply issues the copies, too.",
    ),
    Example(
        "conflict_free", "register_tile",
        "The assembler (ptxas) chose this order: mostly along rows, so that `.reuse` keeps the row's factor. No "
        "multiply-add of this step has a register bank conflict.",
    ),
    Example(
        "cache_block", "blocking",
        "The block of B in use, 64 x 128, is smaller than L1 but does not stay there: its rows are 1 KiB apart, use "
        "half "
        "of the cache's sets, and evict each other. Packed blocks do not.",
    ),
)  # fmt: skip


def draw() -> None:
    """Draw every example into its file, and write the digests of the pictures' contents to `DRAWN`. A test compares
    them, so that a change is noticed.
    """
    FOLDER.mkdir(exist_ok=True)
    digests = {}
    for example in EXAMPLES:
        picture = example.draw()
        save(picture.chart, example.path)
        digests[example.path.name] = digest(specification(picture.chart))
    DRAWN.write_text(json.dumps(digests, indent=1) + "\n", encoding="utf-8")


def digest(spec: Mapping[str, Any]) -> str:
    """Return a digest of the boxes, lines and words of a picture. It does not depend on how they are rendered."""
    charts = spec.get("vconcat", [spec])
    tables = {json.dumps(layer["data"]["values"], sort_keys=True) for chart in charts for layer in chart["layer"]}
    return hashlib.sha256("\n".join(sorted(tables)).encode()).hexdigest()


def kinds_block() -> str:
    """Return a table of the kinds of pictures."""
    rows = [[f"`{drawing.name}`", drawing.title, drawing.caption] for drawing in all_drawings()]
    return markdown_table(["picture", "shows", "how to read it"], rows, texts=("shows", "how to read it"))


def examples_block() -> str:
    """Return the examples, each with its command above and its text below."""
    parts = []
    for example in EXAMPLES:
        command = f"gemmlab explain {example.kernel} --pictures . --picture {example.picture}"
        parts += [f"```sh\n{command}\n```", f"![{find_drawing(example.picture).title}](pictures/{example.path.name})",
                  example.seen]  # fmt: skip
    return "\n\n".join(parts)


BLOCKS: Mapping[str, Callable[[], str]] = {"picture-kinds": kinds_block, "picture-examples": examples_block}
