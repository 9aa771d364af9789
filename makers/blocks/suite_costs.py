"""Blocks on the suite of shapes beside the speeds (`blocks.shapes`): how close strips come to the rate of reading, the
cost of `reproducible=True`, and the call that may round its inputs to TF32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import geometric_mean, median

from blocks.gpu_floor import TFLOPS, reading_us
from blocks.gpu_times import measured
from blocks.markdown import interval, markdown_table
from blocks.records import if_recorded
from blocks.shapes import OURS, by_shape, rounded_down, timings
from gemmlab.core.records import Record
from gemmlab.core.stats import combine_ratios, ratio_of_medians
from gemmlab.results.climb_rows import digits, percent
from gemmlab.timing.suite.shapes import shipped_suite

RECORD, TF32_RECORD = "h200/suite.json", "h200/suite-tf32.json"
REPRODUCIBLE, ROUNDED = "gemmlab:reproducible", "gemmlab:tf32"
ROUNDED_PEERS = ("torch:tf32", "cublas:tf32")
NARROW, WIDE = 16, 64
"""Strips are products with m or n up to `WIDE`. Up to `NARROW` only reading limits them."""
LEAST = {NARROW: 0.90, WIDE: 0.85}
"""The share of the limit that a strip up to this width is meant to reach."""
_HOW = (
    "Share: the time in which `reduce_peak` reads as many bytes as the product reads and writes, with cold caches too, "
    f"divided by the call's time. Above {NARROW} rows or columns the limit is the slower of that and the multiply-adds "
    f"at {TFLOPS:g} TFLOP/s. Shares below their aim, {LEAST[NARROW]:.0%} up to {NARROW} and {LEAST[WIDE]:.0%} up to "
    f"{WIDE}, are in bold."
)


def strips(record: Record) -> str:
    """Return a folded table of the share of the rate of reading that the library call reaches at each strip."""
    found = by_shape(record)
    lines, below = [], 0
    for shape, here in found.items():
        width = min(shape.problem.m, shape.problem.n)
        if OURS not in here or width > WIDE:
            continue
        ours = here[OURS]
        us = median(timings(ours).values())
        arithmetic = 0.0 if width <= NARROW else ours.flops / TFLOPS / 1e6
        share, aim = max(reading_us(ours.bytes), arithmetic) / us, LEAST[NARROW if width <= NARROW else WIDE]
        below += share < aim
        said = percent(share) if share >= aim else f"**{percent(share)}**"
        lines.append([f"`{shape.text}`", digits(us), digits(ours.bytes / us / 1e3), said, f"{aim:.0%}"])
    if not lines:
        return ""
    table = markdown_table(["shape", "us", "GB/s", "share", "aim"], lines)
    title = (
        f"Strips (m or n up to {WIDE}) beside the rate of reading: {len(lines) - below} of {len(lines)} reach their aim"
    )
    return f"<details>\n<summary>{title}</summary>\n\n{table}\n\n{_HOW} {measured(record)}\n\n</details>"


def reproducible(record: Record) -> str:
    """Return a table by family of the time with `reproducible=True` divided by that without; empty if the record has no
    such call.
    """
    costs = {
        shape: ratio_of_medians(timings(here[REPRODUCIBLE]), timings(here[OURS]))
        for shape, here in by_shape(record).items()
        if OURS in here and REPRODUCIBLE in here
    }
    if not costs:
        return ""
    lines = []
    for family in [*shipped_suite().families, ""]:
        mine = {shape: ratio for shape, ratio in costs.items() if family in ("", shape.family)}
        if not mine:
            continue
        worst = max(mine, key=lambda shape: mine[shape].value)
        values = [ratio.value for ratio in mine.values()]
        lines.append([
            family or "all shapes", str(len(mine)), interval(combine_ratios(list(mine.values()))),
            f"{median(values):.2f}", f"{mine[worst].value:.2f}", f"`{worst.text}`",
        ])  # fmt: skip
    heading = ["family", "shapes", "geometric mean (95 %)", "median", "largest", "at"]
    said = "Time with `reproducible=True` divided by the time without, at the suite's products."
    return f"{markdown_table(heading, lines, ('at',))}\n\n{said} {measured(record)}"


def rounded(record: Record) -> str:
    """Return a table by family of the speed of `precision="tf32"` relative to the faster of torch and cuBLAS with
    TF32; empty if the record has no such call.
    """
    rows = {}
    for shape, here in by_shape(record).items():
        rivals = [here[name] for name in ROUNDED_PEERS if name in here and here[name].verified is not False]
        if ROUNDED in here and rivals:
            fastest = min(rivals, key=lambda result: median(timings(result).values()))
            rows[shape] = ratio_of_medians(timings(fastest), timings(here[ROUNDED])), fastest.contestant
    if not rows:
        return ""
    lines, means = [], list[float]()
    for family in shipped_suite().families:
        mine = {shape: row for shape, row in rows.items() if shape.family == family}
        if not mine:
            continue
        worst = min(mine, key=lambda shape: mine[shape][0].value)
        mean = combine_ratios([ratio for ratio, _ in mine.values()])
        means.append(mean.value)
        ratio, rival = mine[worst]
        lines.append([family, str(len(mine)), interval(mean), rounded_down(ratio.value), f"`{worst.text}`", rival])
    lines.append(["all, families weighted equally", str(len(rows)), f"{geometric_mean(means):.3f}", "", "", ""])
    table = markdown_table(
        ["family", "shapes", "geometric mean (95 %)", "worst", "at", "fastest there"], lines, ("at", "fastest there")
    )
    wrong = [
        shape.text for shape, here in by_shape(record).items() if ROUNDED in here and here[ROUNDED].verified is False
    ]
    said = f" **Wrong at {', '.join(wrong)}.**" if wrong else ""
    return (
        f'{table}\n\nSpeed of `precision="tf32"` relative to the faster of torch and cuBLAS with TF32 allowed.{said} '
        f"{measured(record)}"
    )


BLOCKS: Mapping[str, Callable[[], str]] = {
    "shapes-strips": if_recorded(RECORD, strips),
    "shapes-reproducible": if_recorded(RECORD, reproducible),
    "shapes-tf32": if_recorded(TF32_RECORD, rounded),
}
