"""Fit of the model's constants: those of a small grid with the least mean error over all kernels or all but one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from gemmlab.analysis.model.constants import FITTED, FITTED_H200, Constants
from gemmlab.analysis.model.kernel_study import Load
from gemmlab.analysis.model.predict import Model


@dataclass(frozen=True, slots=True)
class Sample:
    """A recorded time and the inputs of its prediction."""

    kernel: str
    loads: tuple[Load, ...]
    nbytes: int
    """Least bytes that are moved from and to device memory."""
    measured_us: float


class Fit:
    """Relative errors of all predictions for `samples`, at every point of a grid of constants.

    The grid is that of `FITTED`. `base` maps kernels to their models; the fitted constants in them do not matter.
    """

    def __init__(self, base: Mapping[str, Model], samples: Sequence[Sample]) -> None:
        self._kernels = [sample.kernel for sample in samples]
        self._errors: dict[Constants, list[float]] = {}
        models = {name: with_constants(model, FITTED_H200) for name, model in base.items()}
        times = [models[sample.kernel].predict(sample.loads, sample.nbytes).time_us for sample in samples]
        for launch_us in FITTED["launch_us"]:
            more = launch_us - FITTED_H200.launch_us
            self._errors[replace(FITTED_H200, launch_us=launch_us)] = [
                abs((time + more) / sample.measured_us - 1) for time, sample in zip(times, samples, strict=True)
            ]

    def best(self, without: str = "") -> Constants:
        """Return the constants with the least mean error over the samples, without those of the kernel `without`.

        If `without` is empty, the samples of all kernels count.
        """

        def mean(constants: Constants) -> float:
            errors = zip(self._kernels, self._errors[constants], strict=True)
            return fmean(error for kernel, error in errors if kernel != without)

        return min(self._errors, key=mean)


def with_constants(model: Model, constants: Constants) -> Model:
    """Return the model with other constants. Both share their cache of schedules, so only `FITTED` ones may differ."""
    return replace(model, constants=constants)
