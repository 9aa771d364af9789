"""Blocks of plain arithmetic: the least work of a product, and the words that each rung reads for an element of C."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from blocks.gpu_counts import COUNTS, GPU, number, rung_counts
from blocks.markdown import markdown_table
from blocks.records import from_record
from blocks.speeds import square
from gemmlab.core.gpu import model
from gemmlab.core.program import Config
from gemmlab.core.records import Record
from gemmlab.results.climb_rows import digits, percent, short_size

SIZES = (256, 512, 1024, 4096, 8192)
BETA = 1
"""1 if C is read, else 0."""
MAXAS = 8, 8
"""Rows and columns of C that a thread computes in the Maxwell design, whose parameters do not name them."""
LANE_LINES = 4
"""The number of lines of the wide operand that a lane takes in `row_product`, which has no parameter for it."""


def bounds_table() -> str:
    """Return a table by size: operations, bytes, and the times of each at the rates of the GPU's data sheet."""
    gpu = model(GPU)
    lines = []
    for n in SIZES:
        flops, read, written = 2 * n**3 + 3 * n**2, 4 * (2 + BETA) * n**2, 4 * n**2
        compute_us, memory_us = flops / gpu.peak_gflops / 1e3, (read + written) / gpu.memory_gbs / 1e3
        least_us = max(compute_us, memory_us)
        lines.append([
            short_size(square(n)), number(flops / 1e9), number(read / 1e6), number(written / 1e6), number(compute_us),
            number(memory_us), digits(2 * n**3 / least_us / 1e6), digits(flops / (read + written)),
        ])  # fmt: skip
    heading = [
        "size", "GFLOP", "MB read", "MB written", "µs of arithmetic", "µs of memory", "TFLOP/s at most",
        "FLOP a byte",
    ]  # fmt: skip
    note = (
        f"2MNK + 3MN operations, 4(MK + KN + MN) bytes read, 4MN written, at the rates of the {gpu.name}'s data sheet: "
        f"{gpu.peak_gflops / 1e3:.1f} TFLOP/s ({gpu.sms} SMs x {gpu.limits.fma_lanes} lanes x 2 at {gpu.boost_mhz} "
        f"MHz) and {gpu.memory_gbs / 1e3:.1f} TB/s."
    )
    return "\n\n".join([markdown_table(heading, lines), note])


def access_table(record: Record) -> str:
    """Return a table of the words that each rung moves for an element of C and a step of k, computed and counted."""
    lines = []
    for name, c in rung_counts(record).items():
        rows, cols = thread_tile(c.config)
        down, across = block_tile(c.config)
        tiled = (rows > 1 or "BK" in c.config) and not in_registers(c.config)
        global_words = 1 / down + 1 / across if "BK" in c.config else 2.0
        shared_words = (rows + cols) / (rows * cols) if tiled else 0.0
        lines.append([
            f"[`{name}`](#{name})", f"{down} x {across}", f"{rows} x {cols}", _words(global_words),
            _words(c.read_bytes / 4 / c.fmas), _words(shared_words), _words(32 * c.wavefronts / c.fmas),
            percent(c.excess / c.wavefronts) if c.wavefronts else "",
        ])  # fmt: skip
    heading = [
        "rung", "tile of a block", "results of a thread", "global words", "words in the sectors", "shared words",
        "words in the wavefronts", "of them excess",
    ]  # fmt: skip
    note = (
        "Words of four bytes for one element of C and one step of k; a whole element takes K times as many. *Global "
        "words* and *shared words* are the words that threads request, by formula. *Words in the sectors* and *in the "
        "wavefronts* are those that the memory moved, counted: more where a request uses only a part of its sectors or "
        "a wavefront only a part of its 32 banks, fewer where lanes share a word."
    )
    return "\n\n".join([markdown_table(heading, lines), note])


def block_tile(config: Config) -> tuple[int, int]:
    """Return the rows and columns of C that a block computes. For kernels of a narrow strip these are the strip's
    lines, and the block's lines of the wide operand. A kernel whose warps have tiles of their own has one of each warp
    at a time.
    """
    if "LS" in config:
        return config["WARPS"] * config["TS"] * config["LS"], config["TT"] * 32 // config["LS"]
    if "STRIP" not in config:
        return config["BM"], config["BN"]
    lines = config.get("LINES", LANE_LINES)
    return config["STRIP"], lines if "LOADS" in config else 32 * lines


def in_registers(config: Config) -> bool:
    """Return whether words are loaded into registers without shared memory, as kernels of a strip without stages do."""
    return "STRIP" in config and "STAGES" not in config


def thread_tile(config: Config) -> tuple[int, int]:
    """Return the rows and columns of C that a thread computes, from the parameters of a rung of the ladder."""
    if "SPLIT" in config:
        return MAXAS
    if "STRIP" in config:
        return config["STRIP"], config.get("LINES", LANE_LINES)
    if "TS" in config:
        return config["TS"], config["TT"]
    rows, cols = config.get("TM", 1), config.get("TN", 1)
    if "WM" in config:
        across = config.get("WNITER", 1)
        return config["WM"] * config["WN"] // (32 * cols * across), cols * across
    return rows, cols


def _words(value: float) -> str:
    return f"{value:.3g}"


BLOCKS: Mapping[str, Callable[[], str]] = {
    "gpu-bounds": bounds_table,
    "gpu-accesses": from_record(COUNTS, access_table),
}
