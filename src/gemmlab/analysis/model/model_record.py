"""Predictions beside recorded times, as a record keeps them, and what they say of the model's error."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Any

from gemmlab.core.errors import RecordError
from gemmlab.core.files import replace_file
from gemmlab.kernels.catalog import current_id
from gemmlab.results.shipped_records import FOLDERS

SCHEMA = "gemmlab.model/1"
NAME = "model.json"
LADDER, CONFIGURATION = "ladder", "configuration"


@dataclass(frozen=True, slots=True)
class Case:
    """One kernel, configuration and size."""

    kernel: str
    op: str
    size: str
    precision: str
    config: Mapping[str, int]
    part: str
    """`LADDER`: in its reference configuration; else `CONFIGURATION`."""
    code_sha256: str
    """What was predicted."""
    same_code: bool
    """Whether that is what was timed."""
    measured_us: float
    predicted_us: float
    held_out_us: float
    """Predicted with constants that were fitted without this kernel; the same where it had no part in them."""
    terms: Mapping[str, float]
    """Microseconds, of `predicted_us`."""

    @property
    def ratio(self) -> float:
        """Predicted to measured, by constants that do not know the kernel."""
        return self.held_out_us / self.measured_us

    @property
    def error(self) -> float:
        return abs(self.ratio - 1)


@dataclass(frozen=True, slots=True)
class ModelRecord:
    """All cases of one GPU."""

    gpu: str
    constants: Mapping[str, float]
    fitted: tuple[str, ...]
    cases: tuple[Case, ...]

    def of(self, part: str, op: str, precision: str = "float32") -> list[Case]:
        """Those whose machine code is what was timed."""
        return [c for c in self.cases if (c.part, c.op, c.precision, c.same_code) == (part, op, precision, True)]

    def case(self, kernel: str, size: str, code_sha256: str) -> Case | None:
        """What was predicted of this machine code."""
        return next((c for c in self.cases if (c.kernel, c.size, c.code_sha256) == (kernel, size, code_sha256)), None)


def median_error(cases: Iterable[Case]) -> float:
    """Of predictions by constants that do not know the kernel."""
    return median(case.error for case in cases)


def grouped(cases: Iterable[Case], key: Callable[[Case], str]) -> dict[str, list[Case]]:
    """In the order in which keys first come."""
    found: dict[str, list[Case]] = {}
    for case in cases:
        found.setdefault(key(case), []).append(case)
    return found


def inversions(cases: Sequence[Case]) -> list[tuple[Case, Case]]:
    """Pairs of one size that were predicted in the other order than measured, the faster first."""
    ordered = sorted(cases, key=lambda case: case.measured_us)
    return [(one, two) for one, two in combinations(ordered, 2) if one.held_out_us > two.held_out_us]


def rank_correlation(cases: Sequence[Case]) -> float:
    """Spearman's: 1 where predictions and times have the same order."""
    measured = _ranks([case.measured_us for case in cases])
    predicted = _ranks([case.held_out_us for case in cases])
    apart: int = sum((one - two) * (one - two) for one, two in zip(measured, predicted, strict=True))
    count = len(cases)
    return 1 - 6 * apart / (count * (count * count - 1))


def load_model(path: Path) -> ModelRecord:
    """Raises `RecordError`."""
    try:
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if data.pop("schema") != SCHEMA:
            raise RecordError(f"{path} is no {SCHEMA}")
        return ModelRecord(
            data["gpu"], data["constants"], tuple(data["fitted"]), tuple(_case(case) for case in data["cases"])
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RecordError(f"cannot read the record {path}: {error}") from error


def _case(data: Mapping[str, Any]) -> Case:
    return Case(**{**data, "kernel": current_id(data["kernel"], notice=False)})


def save_model(record: ModelRecord, path: Path) -> None:
    """A line a case."""
    head = json.dumps(
        {"schema": SCHEMA, "gpu": record.gpu, "constants": dict(record.constants), "fitted": list(record.fitted)}
    )
    lines = ",\n".join(json.dumps(asdict(case)) for case in record.cases)
    replace_file(path, f'{head[:-1]}, "cases": [\n{lines}\n]}}\n'.encode())


@cache
def recorded_model() -> ModelRecord | None:
    """The one that comes with the package; `None` where there is none."""
    for folder in FOLDERS:
        for path in sorted(folder.glob(f"*/{NAME}")):
            return load_model(path)
    return None


def _ranks(values: Sequence[float]) -> list[int]:
    order = sorted(range(len(values)), key=lambda index: values[index])
    ranks = [0] * len(values)
    for rank, index in enumerate(order):
        ranks[index] = rank
    return ranks
