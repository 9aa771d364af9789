"""Blocks of the CPU ladder by size: every rung, and an article's AVX2 tile beside the widest tile and oneDNN."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from blocks.markdown import markdown_table, plain, provenance
from blocks.records import CPU, from_record
from blocks.speeds import Speeds
from gemmlab.core.records import Record
from gemmlab.kernels.catalog import ladder
from gemmlab.results.climb_rows import digits, percent, short_size

LADDER, TILES = f"{CPU}/ladder.json", f"{CPU}/ladder-tiles.json"
NARROW, WIDEST = "kernel:microkernel[LANES=8]", "kernel:microkernel[LANES=0]"
"""Contestants of the second record: the 16 x 6 tile of AVX2, and that of the processor's widest vectors."""
SOURCE: Mapping[str, Mapping[int, float]] = {
    "its naive": {64: 1.96, 128: 1.65, 256: 1.44, 512: 0.95, 1024: 0.61},
    "its loops exchanged": {64: 11.20, 128: 11.84, 256: 12.04, 512: 11.43, 1024: 10.79},
    "its AVX2 tile": {64: 35.42, 128: 40.36, 256: 65.84, 512: 67.65, 1024: 69.12},
    "its oneDNN": {64: 32.97, 128: 62.69, 256: 73.19, 512: 70.06, 1024: 79.73},
}
"""The article's own GFLOP/s on one core by extent of the square product; it computes 80 as the core's peak."""


def ladder_by_size(record: Record) -> str:
    """Return a table with the GFLOP/s of every rung and peer at every size, on one thread, and at each size the gain of
    exchanged loops.
    """
    speeds = Speeds(record)
    rungs = [kernel.id for kernel in ladder("gemm", "cpu") if speeds.rung(kernel.id, speeds.sizes[0])]
    lines = [_row(speeds, f"[`{name}`](#{name})", f"kernel:{name}") for name in rungs]
    lines += [_row(speeds, plain(peer), peer) for peer in speeds.peers]
    swap = [speeds.rung(name, size) for size in speeds.sizes for name in ("loop_reorder_ikj", "naive_ijk")]
    gains = [f"{one.to(two).value:.1f}" if one and two else "" for one, two in zip(swap[::2], swap[1::2], strict=True)]
    lines.append(["loops exchanged, x", *gains])
    return _table(speeds, lines, "GFLOP/s and share of the FMA peak at the widest vectors, one thread, caches warm.")


def tiles_by_size(record: Record) -> str:
    """Return a table with the GFLOP/s of AVX2's register tile and of the widest one, the peers', and the article's."""
    speeds = Speeds(record)
    names = {NARROW: "16 x 6, AVX2 (`LANES=8`)", WIDEST: "widest vectors"} | {
        peer: plain(peer) for peer in speeds.peers
    }
    lines = [_row(speeds, label, name) for name, label in names.items()]
    for peer in speeds.peers:
        for name in (NARROW, WIDEST):
            cells = []
            for size in speeds.sizes:
                one, other = speeds.at(name, size), speeds.at(peer, size)
                cells.append(f"{one.to(other).value:.2f}" if one and other else "")
            lines.append([f"{names[name]}, x {plain(peer)}", *cells])
    sides = [int(size.partition("x")[0]) for size in speeds.sizes]
    lines += [[label, *(f"{known[n]:.4g}" if n in known else "" for n in sides)] for label, known in SOURCE.items()]
    note = "GFLOP/s on one thread, caches warm. The last rows are the article's own figures, of a peak of 80 GFLOP/s."
    return _table(speeds, lines, note)


def _row(speeds: Speeds, label: str, contestant: str) -> list[str]:
    cells = [label]
    for size in speeds.sizes:
        speed, peak = speeds.at(contestant, size), speeds.peak_tflops(size)
        share = f" ({percent(speed.tflops / peak)})" if speed and peak else ""
        cells.append(f"{digits(speed.tflops * 1e3)}{share}" if speed else "")
    return cells


def _table(speeds: Speeds, lines: Sequence[list[str]], said: str) -> str:
    table = markdown_table(["", *(short_size(size) for size in speeds.sizes)], list(lines))
    return f"{table}\n\n{said} Measured on {provenance(speeds.record)}."


BLOCKS: Mapping[str, Callable[[], str]] = {
    "ladder-by-size": from_record(LADDER, ladder_by_size),
    "tiles-by-size": from_record(TILES, tiles_by_size),
}
