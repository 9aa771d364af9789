"""Blocks on the machine code of the TF32 rungs: integer work by number of stages, matrix instructions by
architecture.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from blocks.markdown import markdown_table
from blocks.records import RESULTS, load
from blocks.speeds import Speeds, square
from gemmlab.core.precision import TF32
from gemmlab.results.climb_rows import digits

RECORD, SCHEMA = "emulated/tensor-code.json", "gemmlab.tensor-code/1"
TIMES, TIMED, TOP = "h200/tf32-stages.json", "wmma_tf32_pipelined", 4096


@dataclass(frozen=True, slots=True)
class Stages:
    """The integer instructions of `wmma_tf32_pipelined` with some number of stages; rounding and moves are not counted
    as such.
    """

    arch: str
    stages: int
    modulo: int
    """1 if the stage of a block of k is computed as a remainder, 0 if a counter of stages is kept."""
    compiler: str
    code: str
    """Digest of the machine code."""
    ptx: int
    """Integer instructions in the loop's PTX."""
    reciprocals: int
    """The number of them that multiply by 2^33 / 3, in place of a division by three."""
    integer: float
    """Integer instructions that a warp executes for a block of k."""
    all: float
    """All instructions that a warp executes for a block of k."""


@dataclass(frozen=True, slots=True)
class Shapes:
    """The main loop's instructions of a rung in its default configuration."""

    kernel: str
    arch: str
    compiler: str
    code: str
    loop: Mapping[str, int]
    """Opcode -> its number in the main loop: matrix instructions and shared loads, the most frequent first."""


@cache
def stages() -> Sequence[Stages]:
    """Return the rows of the record; none if there is no record."""
    return [Stages(**row) for row in _record().get("stages", ())]


@cache
def shapes() -> Sequence[Shapes]:
    return [Shapes(**row) for row in _record().get("shapes", ())]


def stages_block() -> str:
    """Return a table with one line for each number of stages and way to find the stage, and one column for each
    architecture.
    """
    rows = {(row.modulo, row.stages, row.arch): row for row in stages()}
    archs = list(dict.fromkeys(row.arch for row in stages()))
    lines = []
    for modulo, count in dict.fromkeys((row.modulo, row.stages) for row in stages()):
        mine = [rows[modulo, count, arch] for arch in archs]
        lines.append([
            f"{count}", f"`block % {count}`" if modulo else "counted", f"{mine[-1].ptx}", f"{mine[-1].reciprocals}",
            *(digits(row.integer) for row in mine), digits(mine[-1].all), *_time(count, modulo),
        ])  # fmt: skip
    heading = [
        "stages", "stage by", "PTX, integer", "of them products with 2³³ / 3",
        *(f"executed, integer, {arch}" for arch in archs), f"executed, all, {archs[-1]}",
        *([f"ms at {TOP}"] if load(TIMES) is not None else []),
    ]  # fmt: skip
    note = (
        f"Instructions of a warp for a block of 16 steps; moves and rounding are not counted as integer work. PTX for "
        f"{archs[-1]} as it stands in the loop, with branches for edges; executed on the emulator. "
        f"{_compilers(row.compiler for row in stages())}."
    )
    return "\n\n".join([markdown_table(heading, lines, ["stage by"]), note])


def _time(count: int, modulo: int) -> list[str]:
    """Return a cell with the time of a call on the H200 in milliseconds, empty if it was not timed; no cell if there is
    no record of times.
    """
    record = load(TIMES)
    if record is None:
        return []
    config = {"STAGES": count, "MODULO": modulo}
    speed = Speeds(record, TF32).find(TIMED, square(TOP), config)
    return ["" if speed is None else digits(speed.time_us / 1e3)]


def shapes_block() -> str:
    """Return a table with one line for each rung and architecture: the main loop's matrix instructions and loads."""
    lines = [[f"[`{row.kernel}`](#{row.kernel})", row.arch, _named(row, "HMMA"), _named(row, "LD")] for row in shapes()]
    heading = ["rung", "for", "matrix instructions", "loads of fragments"]
    note = f"Instructions in the code of the main loop. {_compilers(row.compiler for row in shapes())}."
    return "\n\n".join([markdown_table(heading, lines, heading[1:]), note])


def _named(row: Shapes, start: str) -> str:
    return ", ".join(f"{count} {name}" for name, count in row.loop.items() if name.startswith(start))


def _compilers(names: Iterable[str]) -> str:
    return ", ".join(sorted(set(names)))


@cache
def _record() -> Mapping[str, Any]:
    path = RESULTS / RECORD
    if not path.exists():
        return {}
    data: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if data.get("schema") != SCHEMA:
        raise ValueError(f"{path.name} is no {SCHEMA}")
    return data


BLOCKS: Mapping[str, Callable[[], str]] = {"tensor-stages": stages_block, "tensor-shapes": shapes_block}
