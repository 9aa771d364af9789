"""A kernel's predicted speed at one size, with the known error of such predictions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from gemmlab.analysis.explanation import Explanation
from gemmlab.analysis.model.kernel_study import loads_of, study
from gemmlab.analysis.model.model_record import CONFIGURATION, LADDER, ModelRecord, median_error, recorded_model
from gemmlab.analysis.model.predict import Model, Prediction
from gemmlab.analysis.model.remedies import with_gains
from gemmlab.core.gpu import GpuModel
from gemmlab.core.precision import FLOAT32
from gemmlab.kernels.fitting import as_taken
from gemmlab.kernels.kernel import Kernel
from gemmlab.ops.catalog import find_op
from gemmlab.ops.gemm_problem import size_label
from gemmlab.timing.families import family_of


@dataclass(frozen=True, slots=True)
class QuotedPrediction:
    """A predicted speed with the known error of such predictions."""

    size: str
    unit: str
    speed: float
    """Speed in `unit`."""
    prediction: Prediction
    reliability: str
    """One sentence on the error of such predictions."""

    def to_json(self) -> dict[str, Any]:
        return {
            "size": self.size, "unit": self.unit, "speed": self.speed, "reliability": self.reliability,
            **asdict(self.prediction), "binds": self.prediction.binds,
        }  # fmt: skip


def large_size(op: str) -> str:
    """Return the default size of predictions: the largest benchmark size of the operation."""
    return family_of("cuda", op).bench_sizes.rpartition(",")[2]


def modelled(kernel: Kernel, arch: str, gpu: GpuModel, config: Mapping[str, int]) -> Model:
    """Study a kernel on the emulator and return its model, for any number of sizes.

    Raises `CompileError`, `UsageError`.
    """
    return Model(study(kernel, arch, config, gpu.limits), gpu)


def quote(known: Model, kernel: Kernel, config: Mapping[str, int], sizes: str = "") -> QuotedPrediction:
    """Predict the speed of a kernel at one size from its model `known`; an empty `sizes` means `large_size`.

    Raises `UsageError` for a size that the kernel does not take, and as `Model.predict`.
    """
    op = find_op(kernel.op)
    problem = as_taken(kernel, op, op.parse_sizes(sizes or large_size(op.name))[0])
    found = known.predict(loads_of(kernel, config, problem), op.bytes_moved(problem))
    speed = op.work(problem) / found.time_us / 1e3
    trust = reliability(recorded_model(), known.gpu.name, op.name, kernel.precision)
    return QuotedPrediction(size_label(problem), op.unit, speed, found, trust)


def with_predicted_gains(explained: Explanation, known: Model) -> Explanation:
    """Return the explanation with the predicted gain of each finding's advice at `large_size`.

    `known` is the model of the explained kernel, which must be one of the catalog. Raises the errors of `quote`.
    """
    subject = explained.subject
    assert subject.kernel is not None  # noqa: S101 - the caller has predicted it
    op = find_op(subject.kernel.op)
    problem = as_taken(subject.kernel, op, op.parse_sizes(large_size(op.name))[0])
    found = with_gains(
        explained.findings, known, subject.counters, subject.kernel, subject.config, op, problem
    )  # fmt: skip
    return replace(explained, findings=found)


def reliability(record: ModelRecord | None, gpu: str, op: str, precision: str) -> str:
    """Return a sentence on the known error of predictions for this GPU, operation and precision.

    If `record` lacks the precision or is of another GPU, the sentence says so.
    """
    if record is None:
        return "the error of predictions was not recorded"
    of_ladder = record.of(LADDER, op, precision)
    if not of_ladder:
        of = f"of float32 products on an {record.gpu} {_error_text(record, 'gemm')}"
        return f"never compared with times of {precision} kernels; {of}"
    trust = _error_text(record, op, precision)
    return trust if gpu == record.gpu else f"extrapolated: compared with times of an {record.gpu} only, where {trust}"


def _error_text(record: ModelRecord, op: str, precision: str = FLOAT32) -> str:
    ladder, others = record.of(LADDER, op, precision), record.of(CONFIGURATION, op, precision)
    text = f"predictions were off by {median_error(ladder):.0%} in the median over {len(ladder)} times of the ladder"
    return text + (f", by {median_error(others):.0%} over {len(others)} of other configurations" if others else "")
