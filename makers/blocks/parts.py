"""Blocks of the rungs that multiply float32 by parts on tensor cores: counters, configuration, code, source."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from blocks.counted import Counted, counted
from blocks.diffs import link
from blocks.gpu_counts import COUNTS, counted_on, number
from blocks.markdown import markdown_table
from blocks.records import load
from blocks.speeds import below
from gemmlab.core.precision import PARTS
from gemmlab.kernels.catalog import ladder
from gemmlab.kernels.kernel import Kernel
from gemmlab.results.climb_rows import percent

FIGURES: Mapping[str, Callable[[Counted], str]] = {
    "warp instructions": lambda c: number(c.per_1000(c.facts["instructions"])),
    "HMMA or HGMMA": lambda c: number(c.per_1000(c.opcodes.get("HMMA", 0) + c.opcodes.get("HGMMA", 0))),
    "bulk copies": lambda c: number(c.per_1000(c.opcodes.get("UBLKCP", 0))),
    "FFMA": lambda c: number(c.per_1000(c.opcodes.get("FFMA", 0))),
    "shared wavefronts": lambda c: number(c.per_1000(c.wavefronts)),
    "of them excess": lambda c: percent(c.excess / c.wavefronts),
    "global bytes read by threads": lambda c: number(c.per_1000(c.read_bytes)),
    "sectors a store": lambda c: number(c.facts["global_store_sectors_per_request"]),
}
"""Heading -> a function that returns a counter's text, all launches together. Counts are for 1000 multiply-adds of the
product.
"""


def rungs() -> Sequence[Kernel]:
    """Return the rungs that multiply by parts, the lowest first."""
    return [kernel for kernel in ladder("gemm", "cuda") if kernel.precision in PARTS]


def rung_block(kernel: Kernel) -> str:
    """Return the block of one rung: its counters beside those of the rung before, its configuration,
    code and source.
    """
    parts = {
        "Configuration": ", ".join(f"`{name}` {value}" for name, value in kernel.params.items()),
        "Code": link(kernel),
        "Source": kernel.source,
    }
    return "\n\n".join([_counters(kernel), *(f"**{name}.** {text}." for name, text in parts.items() if text)])


def _counters(kernel: Kernel) -> str:
    record = load(COUNTS)
    found = {} if record is None else {item.kernel: item for item in counted(record)}
    if record is None or kernel.id not in found:
        return f"*Not counted yet: `make counts` adds it to benchmarks/results/{COUNTS}.*"
    lower = below(kernel)
    shown = [found[one.id] for one in (lower, kernel) if one is not None and one.precision in PARTS and one.id in found]
    lines = [[heading, *(figure(item) for item in shown)] for heading, figure in FIGURES.items()]
    table = markdown_table(["for 1000 multiply-adds", *(f"`{item.kernel}`" for item in shown)], lines)
    return f"{table}\n\n{counted_on(record)}"


BLOCKS: Mapping[str, Callable[[], str]] = {f"rung-{kernel.id}": partial(rung_block, kernel) for kernel in rungs()}
