"""The effect of each parameter of a kernel, as a table: from a record with many of its configurations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gemmlab.core.numerals import plain
from gemmlab.core.words import assignments
from gemmlab.pages.kernel_results import KernelResult
from gemmlab.pages.tables import Cell, Table
from gemmlab.results.climb_rows import short_size
from gemmlab.results.sensitivity import Change, Point, Sensitivity, sensitivity
from gemmlab.tuning.outcome_record import REASONS

_LEAST, MOST_PAIRS = 3, 12
"""The smallest number of configurations for a table, and the largest number of changes of two parameters in it."""


def sensitivity_table(results: Sequence[KernelResult]) -> Table | None:
    """Return the table for the record, size and thread count with the most configurations, without wrong results.

    `None` if there are fewer than three of them, if they set different parameters, or if none differs from the best one
    in one parameter alone. The best one is the fastest of those with the most samples.
    """
    found = _around_best(results)
    if found is None or not found.single:
        return None
    pairs = sorted(found.pairs, key=lambda change: change.ratio)[:MOST_PAIRS]
    rows = tuple(
        (Cell(_moves(change)), Cell(plain(change.us / 1e3)), Cell(f"{change.ratio:.3f}"),
         Cell("; ".join(change.reasons)))
        for change in (*found.single, *pairs)
    )  # fmt: skip
    caption = f"What parameters matter, {found.title}: around {assignments(found.best)}"
    note = "x best: time divided by that of the best configuration; of the measured pairs the fastest are shown."
    return Table(caption, ("change", "ms", "x best", "counters that change"), rows, frozenset({0, 3}), note)


def _around_best(results: Sequence[KernelResult]) -> Sensitivity | None:
    groups: dict[tuple[int, str, int], list[KernelResult]] = {}
    for one in results:
        if one.result.samples and one.config and one.result.verified is not False:
            groups.setdefault((id(one.record), one.result.label, one.result.threads), []).append(one)
    group = max(groups.values(), key=len, default=[])
    if len(group) < _LEAST or len({tuple(one.config) for one in group}) > 1:
        return None
    most = max(len(one.result.samples) for one in group)
    best = min((one for one in group if len(one.result.samples) == most), key=lambda one: one.time_us)
    points = [Point(one.config, one.time_us) for one in group if one is not best]
    title = f"{short_size(best.result.label)} on {best.where}"
    found = sensitivity(title, Point(best.config, best.time_us), points)
    reasons = {tuple(one.config.items()): one.result.facts.get(REASONS, ()) for one in group}
    single = tuple(_with_reasons(found, change, reasons) for change in found.single)
    return replace(found, single=single)


def _with_reasons(
    found: Sensitivity, change: Change, reasons: dict[tuple[tuple[str, int], ...], Sequence[str]]
) -> Change:
    config = {**found.best, **dict(zip(change.names, change.after, strict=True))}
    return replace(change, reasons=tuple(str(text) for text in reasons.get(tuple(config.items()), ())))


def _moves(change: Change) -> str:
    triples = zip(change.names, change.before, change.after, strict=True)
    return ", ".join(f"{name} {old} -> {new}" for name, old, new in triples)
