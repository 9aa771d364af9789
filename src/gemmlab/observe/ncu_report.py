"""Read Nsight Compute reports through its Python module, or from the pages that ncu prints."""

from __future__ import annotations

import csv
import importlib
import re
import shutil
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gemmlab.core.errors import UsageError

METRICS: Mapping[str, str] = {
    "inst_executed": "executed",
    "thread_inst_executed": "active_threads",
    "thread_inst_executed_true": "predicated_on_threads",
    "memory_l1_wavefronts_shared": "wavefronts",
    "memory_l1_wavefronts_shared_ideal": "wavefronts_ideal",
    "memory_l2_theoretical_sectors_global": "sectors",
}
"""Metric that Nsight Compute gives for each instruction -> field of `SiteCounters` with the same count."""
LABELS = {
    "inst_executed": ("Instructions Executed", "# Instructions Executed", "Inst Executed"),
    "thread_inst_executed": ("Thread Instructions Executed", "# Thread Instructions Executed"),
    "thread_inst_executed_true": (
        "Predicated-On Thread Instructions Executed", "# Predicated-On Thread Instructions Executed",
    ),
    "memory_l1_wavefronts_shared": ("L1 Wavefronts Shared",),
    "memory_l1_wavefronts_shared_ideal": ("L1 Wavefronts Shared Ideal",),
    "memory_l2_theoretical_sectors_global": ("L2 Theoretical Sectors Global",),
}  # fmt: skip
"""Metric -> possible headings of its column; the metric's own name is accepted too."""
SAMPLED = "smsp__pcsamp_"
"""Prefix of the names of sampled metrics."""


@dataclass(frozen=True, slots=True)
class Instructions:
    """The metrics of one profiled launch, by instruction and in total."""

    name: str
    rows: list[tuple[int, str, dict[str, float]]]
    """(address from the kernel's start, instruction text, counts by metric), in address order."""
    totals: dict[str, float] = field(default_factory=dict)
    """Metric -> value for the whole launch."""

    def opcodes(self) -> Counter[str]:
        """Return executions by warps of each base opcode, for instructions whose text is known."""
        counted: Counter[str] = Counter()
        for _, text, counts in self.rows:
            words = [word for word in text.split() if not word.startswith("@")]
            if words and counts.get("inst_executed"):
                counted[words[0].partition(".")[0]] += round(counts["inst_executed"])
        return counted


def from_report(ncu: str, report: Path, totals: Sequence[str]) -> list[Instructions]:
    """Return every launch of a report; `totals` are regular expressions for the metrics of whole launches to keep.

    Raises `ImportError` when ncu's Python module is not found.
    """
    module = _module(ncu)
    context = module.load_report(str(report))
    return [
        _action(context.range_by_idx(group).action_by_idx(place), totals)
        for group in range(context.num_ranges())
        for place in range(context.range_by_idx(group).num_actions())
    ]


def _module(ncu: str) -> Any:
    where = Path(shutil.which(ncu) or ncu).resolve()
    for folder in where.parents:
        for candidate in (folder / "extras" / "python", *folder.glob("nsight-compute*/*/extras/python")):
            if candidate.is_dir():
                sys.path.insert(0, str(candidate))
                return importlib.import_module("ncu_report")
    for candidate in sorted(Path("/opt/nvidia/nsight-compute").glob("*/extras/python"), reverse=True):
        sys.path.insert(0, str(candidate))
        return importlib.import_module("ncu_report")
    raise ImportError(f"no extras/python beside {where}")


def _action(action: Any, totals: Sequence[str]) -> Instructions:
    counts: dict[int, dict[str, float]] = {}
    names = set(action.metric_names())
    for name in METRICS:
        if name not in names:
            continue
        metric = action.metric_by_name(name)
        if not metric.has_correlation_ids():
            continue
        places = metric.correlation_ids()
        for index in range(metric.num_instances()):
            counts.setdefault(int(places.as_uint64(index)), {})[name] = float(metric.as_double(index))
    start = min(counts, default=0)
    rows = [(place - start, _text(action, place), counts[place]) for place in sorted(counts)]
    figures = {name: _total(action.metric_by_name(name)) for name in sorted(names) if _wanted(name, totals)}
    return Instructions(action.name(), rows, figures)


def _total(metric: Any) -> float:
    """Return a metric's value for the whole launch; for samples, which are stored by instruction, their sum."""
    if metric.name().startswith(SAMPLED) and metric.num_instances():
        return sum(float(metric.as_double(index)) for index in range(metric.num_instances()))
    return float(metric.as_double())


def _text(action: Any, place: int) -> str:
    text = action.sass_by_pc(place)
    return " ".join(str(text).split()) if text else ""


def _wanted(name: str, patterns: Sequence[str]) -> bool:
    return any(re.fullmatch(pattern, name) for pattern in patterns)


def totals_from_csv(page: str, totals: Sequence[str]) -> list[dict[str, float]]:
    """Parse the metrics of whole launches from `ncu --page raw --csv`: headings, units, then one row per launch.

    `totals` are regular expressions for the metrics to keep. Raises `UsageError` for a page without that table.
    """
    rows = [row for row in csv.reader(line for line in page.splitlines() if not line.startswith("==")) if row]
    if not rows or "Kernel Name" not in rows[0]:
        raise UsageError("ncu printed no table of metrics")
    heading, found = rows[0], list[dict[str, float]]()
    for row in rows[1:]:
        if len(row) == len(heading) and row[0].strip().isdigit():
            values = {name: _number(text) for name, text in zip(heading, row, strict=True) if _wanted(name, totals)}
            found.append({name: value for name, value in values.items() if value is not None})
    return found


def from_csv(page: str) -> list[Instructions]:
    """Parse every launch from `ncu --page source --csv`: each has a heading row, then rows of instructions."""
    found: list[Instructions] = []
    columns: dict[str, int] = {}
    name = ""
    starts: list[int] = []
    for row in csv.reader(line for line in page.splitlines() if not line.startswith("==")):
        if _is_heading(row):
            columns = _columns(row)
            found.append(Instructions(name, []))
            starts.append(-1)
        elif not columns or len(row) <= max(columns.values()):
            name = next((cell for cell in reversed(row) if cell), name)
        elif (address := _number(row[columns["Address"]])) is not None:
            if starts[-1] < 0:
                starts[-1] = int(address)
            counts = {
                metric: value
                for metric, place in columns.items()
                if metric in METRICS and (value := _number(row[place])) is not None
            }
            found[-1].rows.append((int(address) - starts[-1], " ".join(row[columns["Source"]].split()), counts))
    return found


def _is_heading(row: Sequence[str]) -> bool:
    return "Source" in row and ("Address" in row or "#" in row)


def _columns(heading: Sequence[str]) -> dict[str, int]:
    places = {cell.strip(): place for place, cell in reversed(list(enumerate(heading)))}
    columns = {"Source": places["Source"], "Address": places["Address"] if "Address" in places else places["#"]}
    for metric, labels in LABELS.items():
        for label in (metric, *labels):
            if label in places:
                columns[metric] = places[label]
                break
    return columns


def _number(text: str) -> float | None:
    """Parse a count as ncu prints it: plain, with thousands separators, or hexadecimal; `None` for other text."""
    plain = text.strip().replace(",", "")
    if re.fullmatch(r"(0x)?[0-9a-f]{6,}", plain) and not plain.isdigit():
        return float(int(plain, 16))
    try:
        return float(plain)
    except ValueError:
        return None
