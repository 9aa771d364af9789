"""Blocks of the GPU's times: rungs by size beside cuBLAS, the ladder at one size, configurations."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from blocks.markdown import interval, markdown_table, provenance
from blocks.records import RESULTS, from_record, load, matching
from blocks.speeds import VENDOR, Speed, Speeds, below, extent, rungs, square
from gemmlab.core.records import Record
from gemmlab.plots.chart import save
from gemmlab.plots.gpu_ladder import ladder_at, rungs_by_size
from gemmlab.results.climb_rows import digits, percent, short_size, times

TIMES, CONFIGS = "h200/gemm.json", "h200/configs*.json"
TOP = 4096
"""The size at which rungs are compared."""
SHOWN = (64, 128, 256, 512, 768, 1024, 1536, 2048, 3072, 4096, 8192)
"""Sizes that the short table shows, if they were measured: powers of two, and sizes at which cuBLAS is slow."""
CONFIG_SIZES = (256, 512, 1024, 2048, 4096)


def ladder_table(record: Record) -> str:
    """Return a table of each rung and library at `TOP`: time, speed, share of the peak, gain over the rung before,
    ratio of its speed to cuBLAS's.
    """
    speeds, size = Speeds(record), square(TOP)
    vendor, peak = speeds.at(VENDOR, size), speeds.peak_tflops(size)
    lines = []
    for kernel in rungs():
        speed, lower = speeds.rung(kernel.id, size), below(kernel)
        if speed is None:
            continue
        before = None if lower is None else speeds.rung(lower.id, size)
        lines.append([
            f"[`{kernel.id}`](ladder-gpu.md#{kernel.id})",
            digits(speed.time_us / 1e3), _tflops(speed), _share(speed, peak),
            "" if before is None else times(speed.to(before).value),
            "" if vendor is None else interval(speed.to(vendor, resamples=2000)), kernel.idea,
        ])  # fmt: skip
    lines += [
        [name, digits(peer.time_us / 1e3), _tflops(peer), _share(peer, peak), "", "", ""]
        for name in speeds.peers
        if (peer := speeds.at(name, size)) is not None
    ]
    heading = ["rung", "ms", "TFLOP/s", "of FMA peak", "x rung before", "x cuBLAS (95 %)", "why"]
    said = "" if peak is None else f"FMA peak measured in the same rounds: {peak:.1f} TFLOP/s. "
    return "\n\n".join(
        [markdown_table(heading, lines, ["why"]), f"At {short_size(size)}. {measured(record)} {said}".strip()]
    )


def readme_ladder(record: Record) -> str:
    """Return, for README, the picture of the ladder, and a sentence on the fastest rung beside cuBLAS."""
    picture = f"![{PICTURES['ladder']}](benchmarks/results/h200/ladder.svg)"
    speeds, size = Speeds(record), square(TOP)
    found = [speed for kernel in rungs() if (speed := speeds.rung(kernel.id, size)) is not None and speed.right]
    if not found:
        return picture
    best, vendor = max(found, key=lambda speed: speed.tflops), speeds.at(VENDOR, size)
    share = _share(best, speeds.peak_tflops(size))
    figures = [
        f"{_tflops(best)} TFLOP/s",
        *([f"{share} of the FMA peak"] if share else []),
        *([f"{interval(best.to(vendor, resamples=2000))} x cuBLAS"] if vendor else []),
    ]
    said = f"The fastest rung at {short_size(size)} is [`{best.kernel}`](docs/ladder-gpu.md#{best.kernel}): "
    return "\n\n".join([picture, f"{said}{', '.join(figures)}. {measured(record)}"])


def size_table(record: Record) -> str:
    """Return a table with one line for each rung and one column for each size: TFLOP/s, and in brackets the ratio to
    cuBLAS. A table of all measured sizes follows, folded up, if this one leaves some out.
    """
    speeds = Speeds(record)
    sizes = [size for size in speeds.sizes if extent(size) in SHOWN]
    lines = []
    for kernel in rungs():
        found = [speeds.rung(kernel.id, size) for size in sizes]
        if any(found):
            lines.append([f"[`{kernel.id}`](#{kernel.id})", *(_cell(speeds, speed) for speed in found)])
    for peer in speeds.peers:
        lines.append([peer, *(_cell(speeds, speeds.at(peer, size)) for size in sizes)])
    table = markdown_table(["TFLOP/s (x cuBLAS)", *(short_size(size) for size in sizes)], lines)
    return "\n\n".join([table, measured(record), _all_sizes(speeds)]).rstrip()


def _all_sizes(speeds: Speeds) -> str:
    """Return the folded table of all sizes; empty if the short table has them all."""
    if {extent(size) for size in speeds.sizes} <= set(SHOWN):
        return ""
    names = [f"kernel:{kernel.id}" for kernel in rungs() if any(s.kernel == kernel.id for s in speeds.all)]
    columns = [*names, *speeds.peers]
    lines = []
    for size in speeds.sizes:
        found = [speeds.at(name, size) for name in columns]
        lines.append([str(extent(size)), *("" if speed is None else _tflops(speed) for speed in found)])
    table = markdown_table(["n", *(f"`{name.removeprefix('kernel:')}`" for name in columns)], lines)
    return f"<details>\n<summary>All sizes n x n x n, in TFLOP/s</summary>\n\n{table}\n\n</details>"


def configs_block() -> str:
    """Return a section with the tables of every record of configurations; empty if there is none."""
    found = [config_tables(record) for name in matching(CONFIGS) if (record := load(name)) is not None]
    said = "Milliseconds by size; the best of each rung and size in bold."
    if len(found) > 1:
        said += (
            " A rung with two tables was timed in two runs; each table names the best of its own configurations. Where "
            "times agree to the digits shown, the choice of the best means nothing."
        )
    return "\n\n".join(["### Configurations", said, *found]) if found else ""


def config_tables(record: Record) -> str:
    """Return a folded table for each rung: its configurations by size, in milliseconds, the best of a size in bold."""
    speeds = Speeds(record)
    sizes = [size for size in speeds.sizes if extent(size) in CONFIG_SIZES] or speeds.sizes
    parts = []
    for kernel in rungs():
        mine = [speed for speed in speeds.all if speed.kernel == kernel.id]
        if not mine:
            continue
        names = list(dict.fromkeys(speed.contestant for speed in mine))
        best = {size: min((s.time_us for s in mine if s.size == size and s.right), default=0.0) for size in sizes}
        varied = [name for name in mine[0].config if len({speed.config.get(name) for speed in mine}) > 1]
        lines = []
        for name in names:
            config = next(speed.config for speed in mine if speed.contestant == name)
            cells = [_ms(speeds.at(name, size), best[size]) for size in sizes]
            lines.append([*(str(config[part]) for part in varied), *cells])
        fixed = ", ".join(f"{name} {value}" for name, value in mine[0].config.items() if name not in varied)
        heading = [*varied, *(short_size(size) for size in sizes)]
        table = f"{markdown_table(heading, lines)}\n\n{f'With {fixed}. ' if fixed else ''}"
        best_one = _best_at_top(mine)
        parts.append(
            f"<details>\n<summary><code>{kernel.id}</code>: {len(names)} configurations{best_one}</summary>\n\n"
            f"{table.rstrip()}\n\n</details>"
        )
    return "\n\n".join([*parts, measured(record)])


def _best_at_top(mine: list[Speed]) -> str:
    top = [speed for speed in mine if speed.size == square(TOP) and speed.right]
    if not top:
        return ""
    best = min(top, key=lambda speed: speed.time_us)
    said = ", ".join(f"{name} {value}" for name, value in best.config.items())
    return f"; best at {TOP}: {digits(best.tflops)} TFLOP/s with {said}"


def _ms(speed: Speed | None, best_us: float) -> str:
    if speed is None:
        return ""
    text = digits(speed.time_us / 1e3) if speed.right else "wrong"
    return f"**{text}**" if speed.right and speed.time_us == best_us else text


def _cell(speeds: Speeds, speed: Speed | None) -> str:
    if speed is None:
        return ""
    vendor = speeds.at(VENDOR, speed.size)
    beside = "" if vendor is None or vendor is speed else f" ({speed.to(vendor).value:.2f})"
    return _tflops(speed) + (beside if speed.right else "")


def _tflops(speed: Speed) -> str:
    return digits(speed.tflops) if speed.right else "wrong"


def _share(speed: Speed, peak: float | None) -> str:
    return "" if peak is None else percent(speed.tflops / peak)


def measured(record: Record) -> str:
    """Return a sentence on where, when and how a record was made."""
    method = record.method
    if method is None:
        return f"Measured on {provenance(record)}."
    processes = f"{method.processes} process{'' if method.processes == 1 else 'es'}"
    return f"Measured on {provenance(record)}, {method.mode} caches, {processes} of {method.rounds} rounds."


PICTURES = {
    "gemm": "TFLOP/s by size of every rung and of cuBLAS",
    "ladder": f"TFLOP/s of every rung and of cuBLAS at {TOP}, with the FMA peak as a line",
}


def draw() -> None:
    """Draw the two charts of `PICTURES` beside the record; nothing without the record."""
    record = load(TIMES)
    if record is None:
        return
    order = [kernel.id for kernel in rungs()]
    save(rungs_by_size(record, order), RESULTS / "h200/gemm.svg")
    save(ladder_at(record, order, square(TOP)), RESULTS / "h200/ladder.svg")


BLOCKS: Mapping[str, Callable[[], str]] = {
    "gpu-readme": from_record(TIMES, readme_ladder),
    "gpu-ladder": from_record(TIMES, ladder_table),
    "gpu-sizes": from_record(TIMES, size_table),
    "gpu-configs": configs_block,
}
