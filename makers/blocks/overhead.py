"""The block on the host's time for a call that computes a small product on a GPU, beside the packages' own calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import median

from blocks.markdown import machine, markdown_table
from blocks.records import if_recorded
from gemmlab.core.records import Record, Result
from gemmlab.core.stats import Timings, ratio_of_medians

RECORD = "h200/overhead.json"
OURS = "library call"


def overhead(record: Record) -> str:
    """Return a table with one row for each way to call the library: median times over all sizes, on which the host's
    time does not depend, and the median and the largest of the ratios to the other package's call.
    """
    found = {(result.contestant, result.label): result for result in record.results}
    rows = []
    for name in dict.fromkeys(result.contestant for result in record.results if result.facts["role"] == OURS):
        pairs = [(one, found[str(one.facts["beside"]), one.label]) for one in record.results if one.contestant == name]
        ratios = [ratio_of_medians(_timings(own), _timings(peer)).value for own, peer in pairs]
        us = [median(median(_timings(one).values()) for one in side) for side in zip(*pairs, strict=True)]
        peer = pairs[0][1].contestant.partition(" [")[0]
        times = [f"{us[0]:.1f}", f"`{peer}`", f"{us[1]:.1f}"]
        rows.append([f"`{name}`", *times, f"{median(ratios):.2f}", f"{max(ratios):.2f}"])
    sizes = ", ".join(dict.fromkeys(result.label.partition("x")[0] for result in record.results))
    versions = ", ".join(sorted({f"{r.facts['package']} {r.facts['version']}" for r in record.results}))
    heading = ["call [variant]", "us", "compared with", "us ", "ratio", "largest ratio"]
    table = markdown_table(heading, rows, ("compared with",))
    when = str(record.environment.get("time_utc", ""))[:10]
    return (
        f"{table}\n\nHost time per call: medians over n = {sizes}; median and largest of the ratios at these sizes. "
        f"{versions}, "
        f"Python {record.environment.get('python')}, {record.environment.get('cpu')}, {machine(record)}, {when}."
    )


def _timings(result: Result) -> Timings:
    return {(sample.process, sample.round): sample.time_us for sample in result.samples}


BLOCKS: Mapping[str, Callable[[], str]] = {"overhead": if_recorded(RECORD, overhead)}
