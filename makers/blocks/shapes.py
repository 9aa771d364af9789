"""Blocks of the suite of shapes: the speed of the library call on a GPU relative to the faster of torch and CuPy."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import geometric_mean, median

from blocks.gpu_floor import TFLOPS, least_us
from blocks.gpu_times import measured
from blocks.markdown import interval, markdown_table
from blocks.records import RESULTS, load
from gemmlab.core.records import Record, Result
from gemmlab.core.stats import Ratio, Timings, combine_ratios, ratio_of_medians
from gemmlab.plots.chart import save
from gemmlab.plots.shape_ratios import ShapeRatio, shape_ratios
from gemmlab.results.climb_rows import digits
from gemmlab.timing.suite.shapes import Shape, shipped_suite

RECORDS = ("h200/suite.json", "h200/suite-batches.json", "h200/suite-groups.json")
"""The records of products, of batches and of groups."""
PICTURE = "h200/suite.svg"
_KINDS = {"gemm": "Products", "batch": "Batches", "group": "Groups"}
NOTHING = "*Not measured yet.*"
OURS, RIVALS, OTHERS = "gemmlab", ("torch", "cupy"), ("cublas", "cublaslt")
"""The library call, the packages whose faster one it is compared with, and further contestants of the tables."""
_SUGGESTED = (
    "*x best of cublasLt's 16*: speed relative to the fastest of the first 16 algorithms of cublasLt's heuristic."
)
_AT_MOST = (
    "*At most*: the mean of a library call that takes no longer than it must. That is as long as `reduce_peak` takes "
    f"to read as many bytes, or as a launch and the multiply-adds at {TFLOPS:g} TFLOP/s, whichever is longer."
)
_WORST = "*Worst*: the least ratio, rounded down."
_CAPTION = "Speed of gemmlab.gemm relative to the faster of torch and CuPy, by shape"


@dataclass(frozen=True, slots=True)
class Row:
    """One shape of the suite with its results."""

    shape: Shape
    ours: Result
    rivals: Mapping[str, Result]
    """Those of torch and CuPy that were timed and not found wrong."""
    others: Mapping[str, Result]
    date: str
    """The day of the record."""

    @property
    def fastest(self) -> str:
        """The name of the rival with the least median time."""
        return min(self.rivals, key=lambda name: median(timings(self.rivals[name]).values()))

    @property
    def bound(self) -> float:
        """The ratio to the fastest rival of a library call that takes no longer than it must (`gpu_floor.py`)."""
        return median(timings(self.rivals[self.fastest]).values()) / least_us(self.ours)

    def ratio(self, to: Result | None = None) -> Ratio:
        """Return the ratio of the library call's speed to that of `to`, by default the fastest rival; above 1 the
        library call is faster.
        """
        return ratio_of_medians(timings(self.rivals[self.fastest] if to is None else to), timings(self.ours))


def rows(records: Sequence[Record]) -> list[Row]:
    """Return a row for each shape at which the library call and a rival were timed, in the order of the suite."""
    found = [row for record in records for row in _rows(record)]
    order = {shape: index for index, shape in enumerate(shipped_suite().shapes)}
    return sorted(found, key=lambda row: order[row.shape])


def _rows(record: Record) -> list[Row]:
    made = []
    for shape, here in by_shape(record).items():
        right = {name: result for name, result in here.items() if result.verified is not False}
        rivals, others = ({name: right[name] for name in names if name in right} for names in (RIVALS, OTHERS))
        if OURS in here and rivals:
            made.append(Row(shape, here[OURS], rivals, others, date(record)))
    return made


def by_shape(record: Record) -> dict[Shape, dict[str, Result]]:
    """Return the results that have samples, by the suite's shape and by contestant, in the order of the suite."""
    found = dict[str, dict[str, Result]]()
    for result in record.results:
        if result.samples:
            found.setdefault(result.label, {})[result.contestant] = result
    shapes = [shape for shape in shipped_suite().shapes if shape.op == record.op]
    return {shape: found[shape.problem.label] for shape in shapes if shape.problem.label in found}


def timings(result: Result) -> Timings:
    return {(sample.process, sample.round): sample.time_us for sample in result.samples}


def rounded_down(ratio: float) -> str:
    """Return a ratio with three decimals, rounded down: 0.9497 is not 0.95."""
    return f"{math.floor(ratio * 1000) / 1000:.3f}"


def family_table(found: Sequence[Row]) -> str:
    """Return a table with one line for each family: the geometric mean of its ratios, and its worst shape."""
    lines, means, bounds = [], list[Ratio](), list[float]()
    for family in shipped_suite().families:
        mine = [row for row in found if row.shape.family == family]
        if not mine:
            continue
        worst = min(mine, key=lambda row: row.ratio().value)
        means.append(combine_ratios([row.ratio() for row in mine]))
        beside = [row.ratio(row.others["cublaslt"]) for row in mine if "cublaslt" in row.others]
        bounds.append(geometric_mean(row.bound for row in mine))
        lines.append([
            family, str(len(mine)), interval(means[-1]), f"{bounds[-1]:.2f}", rounded_down(worst.ratio().value),
            f"`{worst.shape.text}`",
            f"{combine_ratios(beside).value:.2f}" if beside else "",
            ", ".join(sorted({row.date for row in mine})),
        ])  # fmt: skip
    mean, bound = geometric_mean(ratio.value for ratio in means), geometric_mean(bounds)
    lines.append(["all, families weighted equally", str(len(found)), f"{mean:.3f}", f"{bound:.2f}", "", "", "", ""])
    heading = [
        "family",
        "shapes",
        "geometric mean (95 %)",
        "at most",
        "worst",
        "at",
        "x best of cublasLt's 16",
        "measured",
    ]
    table = markdown_table(heading, lines, ("at", "measured"))
    said = f"{_WORST} {_AT_MOST} {_SUGGESTED}" if any(line[-2] for line in lines) else f"{_WORST} {_AT_MOST}"
    return f"{table}\n\n{said}"


def shape_table(found: Sequence[Row], family: str) -> str:
    """Return a folded table of the shapes of a family: the library call's time and speed, and the ratios."""
    lines = []
    for row in (row for row in found if row.shape.family == family):
        us = median(timings(row.ours).values())
        others = [row.rivals.get(name) or row.others.get(name) for name in (*RIVALS, *OTHERS)]
        result = "" if row.ours.verified is not False else " **wrong**"
        lines.append([
            f"`{row.shape.text}`{result}", digits(us), digits(row.ours.flops / us / 1e6), interval(row.ratio()),
            row.fastest, *("" if one is None else f"{row.ratio(one).value:.2f}" for one in others),
        ])  # fmt: skip
    heading = [
        "shape",
        "us",
        "TFLOP/s",
        "x the faster (95 %)",
        "which is",
        *(f"x {name}" for name in (*RIVALS, *OTHERS)),
    ]
    table = markdown_table(heading, lines, ("which is",))
    return f"<details>\n<summary>{family}: {shipped_suite().families[family]}</summary>\n\n{table}\n\n</details>"


def date(record: Record) -> str:
    return str(record.environment.get("time_utc", ""))[:10]


def provenances(records: Sequence[Record]) -> str:
    """Return sentences on where, when and how each record was made, and whether its results were verified."""
    sentences = []
    for record in records:
        ours = [result for result in record.results if result.contestant == OURS]
        unverified = " Results were not verified in this run." if any(one.verified is None for one in ours) else ""
        sentences.append(f"{_KINDS[record.op]}: {measured(record)}{unverified}")
    return " ".join(sentences)


def _records() -> list[Record]:
    return [record for name in RECORDS if (record := load(name)) is not None]


def _libraries(records: Sequence[Record]) -> str:
    versions = {
        name: f"{result.facts['library']} {result.facts['version']}"
        for record in records
        for result in record.results
        for name in [result.contestant]
        if name in (*RIVALS, *OTHERS)
    }
    return ", ".join(versions.values())


def readme_block(records: Sequence[Record]) -> str:
    """Return the plot and the table of families, for README; a sentence while there is no record."""
    found = rows(records)
    if not found:
        return NOTHING
    said = (
        "Speed of `gemmlab.gemm` relative to the faster of `torch` and `cupy` at each shape of "
        "[the suite](docs/measuring.md#the-suite-of-shapes); [every shape](docs/library.md#speed-on-a-gpu)."
    )
    picture = f"![{_CAPTION}](benchmarks/results/{PICTURE})"
    return f"{picture}\n\n{family_table(found)}\n\n{said} {provenances(records)}"


def library_block(records: Sequence[Record]) -> str:
    """Return the plot, the table of families and those of shapes; a sentence while there is no record."""
    found = rows(records)
    if not found:
        return NOTHING
    families = [family for family in shipped_suite().families if any(row.shape.family == family for row in found)]
    return "\n\n".join([
        f"![{_CAPTION}](../benchmarks/results/{PICTURE})",
        family_table(found),
        *(shape_table(found, family) for family in families),
        f"{provenances(records)} {_libraries(records)}; all in float32 without TF32.",
    ])  # fmt: skip


def draw() -> None:
    """Draw the ratios by shape beside the records, once there are any."""
    if found := rows(_records()):
        points = [ShapeRatio(row.shape.family, row.shape.text, row.ratio().value, row.fastest) for row in found]
        save(shape_ratios(points), RESULTS / PICTURE)


BLOCKS: Mapping[str, Callable[[], str]] = {
    "shapes-readme": lambda: readme_block(_records()),
    "shapes": lambda: library_block(_records()),
}
