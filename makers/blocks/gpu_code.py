"""Blocks on the machine code of every configuration of the rungs, and on the sources of their techniques."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache

from blocks.markdown import markdown_table
from blocks.records import RESULTS, with_defaults
from blocks.speeds import rungs
from gemmlab.core.program import Config
from gemmlab.precompile.sweep import SweepRow, load_sweep

SWEEP = "compile-sweep.json"


@cache
def sweep() -> Sequence[SweepRow]:
    """Return every row of the compile sweep's record; none if there is no record."""
    rows = load_sweep(RESULTS / SWEEP) if (RESULTS / SWEEP).exists() else ()
    return [replace(row, config=with_defaults(row.kernel, row.config)) for row in rows]


def swept(kernel: str, arch: str, config: Config) -> SweepRow | None:
    """Return the row of a kernel in a configuration, the first one if there are several operand layouts; `None` if the
    sweep has none.
    """
    return next(
        (row for row in sweep() if (row.kernel, row.arch) == (kernel, arch) and config.items() <= row.config.items()),
        None,
    )


def sweep_block() -> str:
    """Return a section with one line for each rung and architecture, the least and the most of each figure over all its
    configurations; empty without a record.
    """
    lines = []
    for kernel in rungs():
        for arch in sorted({row.arch for row in sweep() if row.kernel == kernel.id}):
            rows = [row for row in sweep() if (row.kernel, row.arch) == (kernel.id, arch)]
            spilling = sum(row.figures["spill_stores"] + row.figures["spill_loads"] > 0 for row in rows)
            lines.append([
                f"[`{kernel.id}`](#{kernel.id})", arch, str(len(rows)), _range(rows, "registers"),
                _range(rows, "smem_bytes"), _range(rows, "blocks_per_sm"), _range(rows, "warps_per_sm"),
                _range(rows, "code_bytes"), str(spilling) if spilling else "none",
            ])  # fmt: skip
    if not lines:
        return ""
    heading = [
        "rung", "for", "instances", "registers", "shared bytes", "blocks an SM", "warps an SM", "code bytes",
        "spilling",
    ]  # fmt: skip
    made = json.loads((RESULTS / SWEEP).read_text(encoding="utf-8"))
    said = (
        "The least and the most of each figure over every legal configuration and operand layout. "
        f"Compiled by {made['compiler']} on {made['time_utc'][:10]}; the rungs' code may have changed since."
    )
    return "\n\n".join(["### What the compiler makes of them", said, markdown_table(heading, lines, ["for"])])


def sources_table() -> str:
    """Return a table of the GPU rungs, what each is, and the sources of their techniques."""
    lines = [[f"[`{kernel.id}`](#{kernel.id})", kernel.summary, kernel.source] for kernel in rungs()]
    return markdown_table(["rung", "what it is", "from"], lines, ["what it is", "from"])


def _range(rows: Sequence[SweepRow], figure: str) -> str:
    values = [row.figures[figure] for row in rows]
    return f"{min(values):,}" if min(values) == max(values) else f"{min(values):,} to {max(values):,}"


BLOCKS: Mapping[str, Callable[[], str]] = {"gpu-sweep": sweep_block, "gpu-sources": sources_table}
