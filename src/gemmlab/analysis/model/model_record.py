"""Record of predictions beside recorded times, and the model's error that follows from them."""

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

SCHEMA = "gemmlab.model/2"
NAME = "model.json"
LADDER, CONFIGURATION = "ladder", "configuration"


@dataclass(frozen=True, slots=True)
class Case:
    """The predicted and the recorded time of one kernel, configuration and size."""

    kernel: str
    op: str
    size: str
    precision: str
    config: Mapping[str, int]
    part: str
    """`LADDER` for a kernel in its reference configuration, else `CONFIGURATION`."""
    code_sha256: str
    """Digest of the machine code that was predicted."""
    same_code: bool
    """True if the machine code that was timed is the one that was predicted."""
    measured_us: float
    predicted_us: float
    terms: Mapping[str, float]
    """Term of the prediction (`Prediction.terms`) -> microseconds; together `predicted_us`."""

    @property
    def ratio(self) -> float:
        """Predicted time divided by measured time."""
        return self.predicted_us / self.measured_us

    @property
    def error(self) -> float:
        """Relative error of `predicted_us`."""
        return abs(self.ratio - 1)


@dataclass(frozen=True, slots=True)
class ModelRecord:
    """All cases of one GPU."""

    gpu: str
    constants: Mapping[str, float]
    cases: tuple[Case, ...]

    def of(self, part: str, op: str, precision: str = "float32") -> list[Case]:
        """Return the cases of a part, operation and precision whose machine code is the one that was timed."""
        return [c for c in self.cases if (c.part, c.op, c.precision, c.same_code) == (part, op, precision, True)]

    def case(self, kernel: str, size: str, code_sha256: str) -> Case | None:
        """Return the case of this kernel, size and machine code; `None` if there is none."""
        return next((c for c in self.cases if (c.kernel, c.size, c.code_sha256) == (kernel, size, code_sha256)), None)


def median_error(cases: Iterable[Case]) -> float:
    """Return the median relative error of predictions. There must be at least one case."""
    return median(case.error for case in cases)


def grouped(cases: Iterable[Case], key: Callable[[Case], str]) -> dict[str, list[Case]]:
    """Group cases by `key`, in the order in which the keys first occur."""
    found: dict[str, list[Case]] = {}
    for case in cases:
        found.setdefault(key(case), []).append(case)
    return found


def inversions(cases: Sequence[Case]) -> list[tuple[Case, Case]]:
    """Return the pairs whose predicted order is the reverse of the measured order; the faster by measurement is first.

    All of `cases` must be of one size.
    """
    ordered = sorted(cases, key=lambda case: case.measured_us)
    return [(one, two) for one, two in combinations(ordered, 2) if one.predicted_us > two.predicted_us]


def rank_correlation(cases: Sequence[Case]) -> float:
    """Return Spearman's rank correlation of predicted and measured times of at least two cases.

    It is 1 if both have the same order, -1 if the order is reversed.
    """
    measured = _ranks([case.measured_us for case in cases])
    predicted = _ranks([case.predicted_us for case in cases])
    apart: int = sum((one - two) * (one - two) for one, two in zip(measured, predicted, strict=True))
    count = len(cases)
    return 1 - 6 * apart / (count * (count * count - 1))


def load_model(path: Path) -> ModelRecord:
    """Load a model record. Raises `RecordError` for a file that cannot be read or has another schema."""
    try:
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if data.pop("schema") != SCHEMA:
            raise RecordError(f"{path} is no {SCHEMA}")
        return ModelRecord(data["gpu"], data["constants"], tuple(_case(case) for case in data["cases"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RecordError(f"cannot read the record {path}: {error}") from error


def _case(data: Mapping[str, Any]) -> Case:
    return Case(**{**data, "kernel": current_id(data["kernel"], notice=False)})


def save_model(record: ModelRecord, path: Path) -> None:
    """Write a model record as JSON with one line per case."""
    head = json.dumps({"schema": SCHEMA, "gpu": record.gpu, "constants": dict(record.constants)})
    lines = ",\n".join(json.dumps(asdict(case)) for case in record.cases)
    replace_file(path, f'{head[:-1]}, "cases": [\n{lines}\n]}}\n'.encode())


@cache
def recorded_model() -> ModelRecord | None:
    """Return the model record that comes with gemmlab, the first one in order of names; `None` if there is none."""
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
