"""Records of a few measured results."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gemmlab.core.records import Method, Record, Result, Sample
from gemmlab.results.comparison import Comparison

METHOD = Method(9, 1, 3000.0, 1000.0, 20.0, 16, True, 0)
CPU = {"id": "cpu", "name": "A CPU", "facts": {"vendor": "V", "model": 7, "logical_cpus": 2}}


def result(name: str, times: Any, *, label: str = "64x64x64", role: str = "rung", **facts: Any) -> Result:
    """`times` by process and round."""
    samples = [
        Sample(process, round_, float(time), 1, 1, ())
        for process, row in enumerate(times)
        for round_, time in enumerate(row)
    ]
    return Result(name, {}, label, 1000, 1, {"role": role, **facts}, tuple(samples), True)


def record(*results: Result, **changes: Any) -> Record:
    return replace(Record("bench", "gemm", {}, CPU, METHOD, results), **changes)


def verdicts(found: Comparison) -> list[str]:
    return [case.verdict for case in found.cases]
