"""The section of a page about one kernel: facts from its source file, from the records and from its machine code.

Measured times and explanations are combined only if both are of the same machine code, by digest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gemmlab.core.numerals import plain
from gemmlab.kernels.kernel import Kernel
from gemmlab.observe.profile import Profiles
from gemmlab.ops.catalog import unit_of
from gemmlab.pages.kernel_results import KernelResult
from gemmlab.pages.profile_section import Profiled, profiled
from gemmlab.pages.sensitivity_table import sensitivity_table
from gemmlab.pages.studies import Outcome, Study
from gemmlab.pages.study_tables import StudyTables, tables_of
from gemmlab.pages.tables import Cell, Table, verdict
from gemmlab.results.climb_rows import digits, short_size

_SHORT = 12
"""Digits of a digest that the page shows."""


@dataclass(frozen=True, slots=True)
class Section:
    """The section of one kernel."""

    id: str
    kernel: Kernel | None
    """`None` if only records know the kernel."""
    idea: str
    results: tuple[KernelResult, ...]
    table: Table
    counters: Table | None
    sensitivity: Table | None
    """The effect of each parameter, from a record with many configurations; `None` without such a record."""
    study: StudyTables | None
    """Tables from the study of its code; `None` if it failed or was not requested."""
    why_not: str
    """Reason why the requested study failed; empty if it succeeded or was not requested."""
    same: tuple[str, ...]
    """Descriptions of the records that timed or counted the explained code; empty without an explanation."""
    other: tuple[str, ...]
    """Descriptions of the records that timed or counted other code of the kernel, with the differences; empty without
    an explanation.
    """
    profiled: tuple[Profiled, ...]
    measured: float | None
    """Measured GFLOP/s of the explained code on the GPU it is explained for, at the largest problem; `None` if it was
    not timed there, or only with wrong results.
    """
    page: str = ""
    """Address of the kernel's page, relative to the report; empty if none is written."""


def section(
    name: str,
    kernel: Kernel | None,
    results: Sequence[KernelResult],
    outcome: Outcome | None,
    profiles: Sequence[Profiles] = (),
) -> Section:
    """Return the section of a kernel.

    `outcome` is its study, the reason why that failed, or `None` if no study was requested.
    """
    study = outcome if isinstance(outcome, Study) else None
    why_not = outcome if isinstance(outcome, str) else ""
    now = None if study is None else study.explanation
    idea = next((str(one.result.facts["idea"]) for one in results if one.result.facts.get("idea")), "")
    same, other = _compared(results, now) if now is not None else ((), ())
    return Section(
        id=name, kernel=kernel, idea=idea if kernel is None else kernel.idea, results=tuple(results),
        table=_table(results, now, "" if study is None or study.prediction is None else str(study.prediction["size"])),
        counters=_counters(results), sensitivity=sensitivity_table(results),
        study=None if study is None else tables_of(study),
        why_not=why_not, same=same, other=other, profiled=profiled(name, kernel, profiles, now),
        measured=None if now is None else _measured(results, now),
    )  # fmt: skip


def _compared(results: Sequence[KernelResult], now: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    same, other = [], []
    for one in results:
        if one.digest == now["code_sha256"]:
            same.append(_origin(one))
        elif one.digest:
            other.append(f"{_origin(one)}: {one.digest[:_SHORT]}, {_difference(one, now)}")
    return tuple(dict.fromkeys(same)), tuple(dict.fromkeys(other))


def _origin(one: KernelResult) -> str:
    how = "timed" if one.result.samples else "counted"
    return f"{how} on {one.where}, {str(one.record.environment.get('time_utc', '?'))[:10]}"


def _difference(one: KernelResult, now: Mapping[str, Any]) -> str:
    """Return the differences of a result's code from the explained code, in words.

    If architecture, compiler and configuration are the same, the words are that the source has changed.
    """
    facts = one.result.facts
    then = {"architecture": facts.get("target"), "compiler": facts.get("compiler"), "configuration": one.config}
    here = {"architecture": now["arch"], "compiler": now["compiler"], "configuration": dict(now["config"])}
    differ = [f"{name} {_flat(then[name])}, here {_flat(here[name])}" for name in then if then[name] != here[name]]
    return "; ".join(differ) or "the same configuration and compiler, so its file or a header has changed since"


def _flat(value: Any) -> str:
    return " ".join(f"{name}={part}" for name, part in value.items()) if isinstance(value, Mapping) else str(value)


def _table(results: Sequence[KernelResult], now: Mapping[str, Any] | None, predicted: str) -> Table:
    """Return the table of times: the largest timed problem of each record, configuration and thread count.

    For the explained configuration, and results that state none, the table has those at the size `predicted`, too.
    `now` is the explanation as JSON values, if there is one.
    """
    largest: dict[tuple[int, str, int], KernelResult] = {}
    for one in results:
        key = (id(one.record), one.result.contestant, one.result.threads)
        if one.result.samples and (key not in largest or one.result.flops >= largest[key].result.flops):
            largest[key] = one
    shown = {id(one) for one in largest.values()}
    if now is not None:
        alike = [one for one in results if one.result.samples and one.config in ({}, dict(now["config"]))]
        shown |= {id(one) for one in alike if one.result.label == predicted}
    rows = tuple(tuple(_timed(one, now)) for one in results if id(one) in shown)
    bound = ("of the bound",) if now is not None else ()
    headings = ("on", "configuration", "size", "threads", "ms", "speed", *bound, "result", "code")
    words = frozenset({0, 1, len(headings) - 2, len(headings) - 1})
    return Table("Timed", headings, rows, words)


def _timed(one: KernelResult, now: Mapping[str, Any] | None) -> Iterator[Cell]:
    result, unit, speed = one.result, unit_of(one.record.op), one.speed
    yield Cell(f"{one.where}, {one.record.kind}")
    yield Cell(_flat(one.config))
    yield Cell(short_size(result.label))
    yield Cell(str(result.threads))
    yield Cell(digits(one.time_us / 1e3))
    yield Cell(f"{digits(speed)} {unit}", key=speed)
    if now is not None:
        yield Cell(f"{speed / now['roofline']['bound']:.1%}" if _comparable(one, now) else "")
    yield verdict(result.verified)
    yield Cell(one.digest[:_SHORT], wrong=now is not None and bool(one.digest) and one.digest != now["code_sha256"])


def _comparable(one: KernelResult, now: Mapping[str, Any]) -> bool:
    """Return True if a result is timed, not wrong, and of the explained code on the GPU it is explained for."""
    if not one.result.samples or one.result.verified is False:
        return False
    return (one.digest, one.model) == (now["code_sha256"], now["gpu"])


def _measured(results: Sequence[KernelResult], now: Mapping[str, Any]) -> float | None:
    """Return the GFLOP/s of the `_comparable` result with the largest problem; `None` without such a result."""
    best = max((one for one in results if _comparable(one, now)), key=lambda one: one.result.flops, default=None)
    return None if best is None else best.result.flops / (best.time_us * 1e3)


def _counters(results: Sequence[KernelResult]) -> Table | None:
    """Return the table of counters from the last result that has some; `None` without any."""
    counted = [one for one in results if isinstance(one.result.facts.get("counters"), dict)]
    if not counted:
        return None
    one = counted[-1]
    rows = tuple(
        (
            Cell(str(name)),
            Cell(plain(value, 6)),
            Cell(str(metric.get("confidence"))),
            Cell(str(metric.get("why") or "")),
        )
        for name, metric in one.result.facts["counters"].items()
        if isinstance(metric, Mapping) and isinstance(value := metric.get("value"), (int, float))
    )
    origin = one.result.facts.get("origin") or one.where
    caption = f"Counted on {origin} at {short_size(one.result.label)}"
    return Table(caption, ("metric", "value", "confidence", ""), rows, frozenset({0, 2, 3}))
