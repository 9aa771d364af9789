"""Summary of a bench: a row per contestant and problem, ratios to each peer, and a verdict on given targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from gemmlab.core.notebook_view import Display
from gemmlab.core.numerals import duration
from gemmlab.core.precision import FLOAT32, comparable_precision
from gemmlab.core.records import Record, Result
from gemmlab.core.stats import RESAMPLES, Ratio, Timings, combine_ratios, ratio_of_medians, spread
from gemmlab.core.words import counted
from gemmlab.ops.op import GBS, GFLOPS

FASTEST = "fastest peer"
OURS = ("library call", "rung")
QUOTED = "quoted"
"""Role of a library whose times are only quoted: no contestant is compared with it."""
BASELINE = "baseline"
"""Role of the naive kernel that a bench times for `Row.to_naive`."""


@dataclass(frozen=True, slots=True, repr=False)
class Row(Display):
    """One contestant on one problem. Ratios are of speeds: above 1, the contestant is faster."""

    label: str
    threads: int
    contestant: str
    role: str
    median_us: float
    iqr_us: float
    mad_us: float
    gflops: float
    peak_share: float | None
    """Fraction of the peak (FMA, or for sums the memory rate) probed in the same rounds; `None` if nothing was probed,
    and for other precisions than float32.
    """
    verified: bool | None
    """Verdict on the result; `None` if it was not compared with the reference."""
    ratios: Mapping[str, Ratio] = field(default_factory=dict)
    """Ratios to each peer, and under `FASTEST` to the peer with the best median among those that are not wrong. Only
    for gemmlab's kernels and library calls.
    """
    fastest: str | None = None
    """The name of the peer under `FASTEST`; `None` if there is no such ratio."""
    flops: int = 0
    bytes: int = 0
    reference_us: float | None = None
    """Time of the float64 reference on the CPU, in microseconds."""
    to_naive: float | None = None
    """Ratio of GFLOP/s to those of the naive kernel at the size `naive_at`; both are `None` if it was not timed."""
    naive_at: str | None = None
    precision: str = FLOAT32
    """Precision to which the inputs may be rounded. The row is compared only with peers of the same class: precisions
    with float32's errors are one class, every other one is another.
    """

    @property
    def gbs(self) -> float:
        """Bandwidth in GB/s (10^9 bytes), counting the bytes that an execution must read and write."""
        return self.bytes / (self.median_us * 1e3)

    def speed(self, unit: str) -> float:
        """Return the speed in the unit of the operation (`Op.unit`)."""
        return {GFLOPS: self.gflops, GBS: self.gbs}[unit]

    def _line(self) -> str:
        return str(self)

    def __str__(self) -> str:
        """Return the contestant, its time and its verdict in words."""
        right = {True: "right", False: "WRONG", None: "not verified"}[self.verified]
        return f"{self.contestant.removeprefix('kernel:')} at {self.label}: {duration(self.median_us)}, {right}"


@dataclass(frozen=True, slots=True)
class Mean:
    """Geometric mean of one contestant's ratios to one peer (or `FASTEST`), over the problems with both."""

    contestant: str
    peer: str
    threads: int
    problems: int
    ratio: Ratio


@dataclass(frozen=True, slots=True, repr=False)
class Summary(Display):
    """The result of `summarise`."""

    rows: tuple[Row, ...]
    means: tuple[Mean, ...]

    def _line(self) -> str:
        return "; ".join(map(str, self.rows))

    def to_json(self) -> dict[str, Any]:
        """Return the summary as JSON values, ratios as value, low and high."""
        rows = [
            {**_plain(row), "gbs": row.gbs, "ratios": {name: _interval(ratio) for name, ratio in row.ratios.items()}}
            for row in self.rows
        ]
        means = [{**_plain(mean), "ratio": _interval(mean.ratio)} for mean in self.means]
        return {"rows": rows, "means": means}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on targets, with a sentence for each failure."""

    passed: bool
    failures: tuple[str, ...]


def summarise(record: Record) -> Summary:
    """Return a row for each timed result but the probe's, and the geometric means of ratios.

    Rows have the record's order, but those of one size and thread count follow one another.
    """
    groups: dict[tuple[str, int], list[Result]] = {}
    for result in record.results:
        if result.samples:
            groups.setdefault((result.label, result.threads), []).append(result)
    rows = _beside_naive([row for members in groups.values() for row in _rows(members)])
    collected: dict[tuple[str, str, int], list[Ratio]] = {}
    for row in rows:
        for peer, ratio in row.ratios.items():
            collected.setdefault((row.contestant, peer, row.threads), []).append(ratio)
    means = [Mean(*key, len(ratios), combine_ratios(ratios)) for key, ratios in collected.items()]
    return Summary(tuple(rows), tuple(means))


def judge(summary: Summary, geomean_target: float, floor: float) -> Verdict:
    """Compare each of gemmlab's contestants with the fastest peer.

    A problem fails if the upper end of the 95 % interval of its speed ratio is below `floor`, a geometric mean if its
    upper end is below `geomean_target`. A wrong result of gemmlab's always fails, and so does a summary without peers.
    """
    failures = []
    ours = [row for row in summary.rows if row.role in OURS]
    for row in ours:
        where = f"{row.contestant} at {row.label}, {counted(row.threads, 'thread')}"
        ratio = row.ratios.get(FASTEST)
        if row.verified is False:
            failures.append(f"{where}: wrong result")
        if ratio is not None and ratio.high < floor:
            failures.append(f"{where}: {_words(ratio)} of {row.fastest}, floor {floor:g}")
    means = [mean for mean in summary.means if mean.peer == FASTEST]
    for mean in means:
        if mean.ratio.high < geomean_target:
            where = f"{mean.contestant}, geometric mean of {counted(mean.problems, 'problem')}"
            on = counted(mean.threads, "thread")
            failures.append(f"{where}, {on}: {_words(mean.ratio)} of the fastest peer, target {geomean_target:g}")
    if not means:
        failures.append("nothing was timed against a peer")
    return Verdict(not failures, tuple(failures))


def all_notes(record: Record) -> list[str]:
    """Return the notes of the record, and those of its results with contestant and size, without repetitions."""
    notes = list(record.notes)
    for result in record.results:
        notes += [f"{result.contestant} at {result.label}: {note}" for note in result.notes]
    return list(dict.fromkeys(notes))


def _rows(members: Sequence[Result]) -> list[Row]:
    timings = {result.contestant: _timings(result) for result in members}
    medians = {name: spread(list(times.values())) for name, times in timings.items()}
    peak = next((timings[r.contestant] for r in members if _role(r) == "peak"), None)
    rows = []
    for result in members:
        name, role, precision = result.contestant, _role(result), _precision(result)
        if role == "peak":
            continue
        equals = [
            r
            for r in members
            if _role(r) == "peer" and comparable_precision(_precision(r)) == comparable_precision(precision)
        ]
        peers = [r.contestant for r in equals]
        # A peer with a wrong result cannot be the fastest.
        right = [r.contestant for r in equals if r.verified is not False]
        fastest = min(right, key=lambda name: medians[name].median, default=None)
        ratios: dict[str, Ratio] = {}
        if role in OURS:
            for peer in peers:
                found = _ratio(timings[peer], timings[name])
                if found is not None:
                    ratios[peer] = found
            if fastest in ratios:
                ratios[FASTEST] = ratios[fastest]
        on_fma = peak is not None and result.flops and precision == FLOAT32
        share = None if peak is None or not on_fma else _ratio(peak, timings[name], resamples=1)
        middle = medians[name]
        rows.append(
            Row(
                label=result.label, threads=result.threads, contestant=name, role=role, median_us=middle.median,
                iqr_us=middle.iqr, mad_us=middle.mad, gflops=result.flops / (middle.median * 1e3),
                peak_share=share.value if share else None, verified=result.verified, ratios=ratios,
                fastest=fastest if FASTEST in ratios else None, flops=result.flops, bytes=result.bytes,
                reference_us=result.reference_us, precision=precision,
            )
        )  # fmt: skip
    return rows


def _beside_naive(rows: list[Row]) -> list[Row]:
    """Return the rows with their ratio to the naive kernel at the same size, or else at its largest timed size."""
    naive = {row.label: row for row in rows if row.role == BASELINE}
    if not naive:
        return rows
    largest = max(naive.values(), key=lambda row: row.flops)
    return [
        replace(row, to_naive=row.gflops / beside.gflops, naive_at=beside.label)
        for row in rows
        for beside in (naive.get(row.label, largest),)
    ]


def _timings(result: Result) -> dict[tuple[int, int], float]:
    return {(sample.process, sample.round): sample.time_us for sample in result.samples}


def _ratio(numerator: Timings, denominator: Timings, *, resamples: int = RESAMPLES) -> Ratio | None:
    if not numerator.keys() & denominator.keys():
        return None
    return ratio_of_medians(numerator, denominator, resamples=resamples)


def _role(result: Result) -> str:
    return str(result.facts.get("role", ""))


def _precision(result: Result) -> str:
    return str(result.facts.get("precision", FLOAT32))


def _interval(ratio: Ratio) -> dict[str, float]:
    return {"value": ratio.value, "low": ratio.low, "high": ratio.high}


def _words(ratio: Ratio) -> str:
    return f"{ratio.value:.3f} ({ratio.low:.3f} to {ratio.high:.3f})"


def _plain(item: Row | Mean) -> dict[str, Any]:
    return {name: value for name, value in asdict(item).items() if name not in ("ratios", "ratio")}
