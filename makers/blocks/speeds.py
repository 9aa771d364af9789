"""Times of a bench's record by contestant and size, and the rungs of the float32 GPU ladder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from blocks.records import with_defaults
from gemmlab.core.precision import FLOAT32
from gemmlab.core.records import Record, Result
from gemmlab.core.stats import Ratio, Timings, ratio_of_medians, spread
from gemmlab.kernels.catalog import find_kernel, ladder
from gemmlab.kernels.kernel import Kernel

VENDOR = "cublas"


@dataclass(frozen=True, slots=True)
class Speed:
    """The time of one contestant at one size."""

    contestant: str
    kernel: str
    """The kernel's id; empty for a peer."""
    size: str
    config: Mapping[str, int]
    time_us: float
    """Median time in microseconds."""
    tflops: float
    right: bool
    """False if its result was found wrong; True also if it was not verified."""
    facts: Mapping[str, Any]
    timings: Timings = field(repr=False)

    def to(self, other: Speed, *, resamples: int = 1) -> Ratio:
        """Return the ratio of this speed to another, over the turns that both took; above 1, this one is faster."""
        return ratio_of_medians(other.timings, self.timings, resamples=resamples)


class Speeds:
    """The speeds of the rungs and peers of a record in one precision; the probe of the peak is not one of them."""

    def __init__(self, record: Record, precision: str = FLOAT32) -> None:
        self.record = record
        self.all = [
            _speed(result)
            for result in record.results
            if result.samples
            and result.facts.get("role") in ("rung", "peer")
            and result.facts.get("precision", FLOAT32) == precision
        ]
        self._by_place = {(speed.contestant, speed.size): speed for speed in self.all}

    def at(self, contestant: str, size: str) -> Speed | None:
        """Return the speed of a contestant, such as `"kernel:naive"` or `"cublas"`, at a size such as `"256x256x256"`;
        `None` if it was not timed.
        """
        return self._by_place.get((contestant, size))

    def rung(self, kernel: str, size: str) -> Speed | None:
        """Return the speed of a kernel in its default configuration; `None` if it was not timed."""
        return self.at(f"kernel:{kernel}", size)

    def find(self, kernel: str, size: str, config: Mapping[str, int]) -> Speed | None:
        """Return the first speed of a kernel whose configuration has these values; `None` if there is none."""
        return next(
            (s for s in self.all if s.kernel == kernel and s.size == size and config.items() <= s.config.items()), None
        )

    @property
    def sizes(self) -> list[str]:
        """The labels of the square sizes, the smallest first."""
        labels = {speed.size for speed in self.all if len(set(speed.size.split("x"))) == 1}
        return sorted(labels, key=extent)

    @property
    def peers(self) -> list[str]:
        return list(dict.fromkeys(speed.contestant for speed in self.all if not speed.kernel))

    def peak_tflops(self, size: str) -> float | None:
        """Return the multiply-add peak that was measured in turns with the contestants at a size, or `None`."""
        for result in self.record.results:
            if result.facts.get("role") == "peak" and result.label == size and result.samples:
                return result.flops / spread([sample.time_us for sample in result.samples]).median / 1e6
        return None


def extent(size: str) -> int:
    """Return the extent of a square size."""
    return int(size.partition("x")[0])


def square(n: int) -> str:
    return f"{n}x{n}x{n}"


def rungs() -> Sequence[Kernel]:
    """Return the rungs of the float32 GPU ladder, the lowest first."""
    return [kernel for kernel in ladder("gemm", "cuda") if kernel.precision == FLOAT32]


def below(kernel: Kernel) -> Kernel | None:
    """Return the rung that another comes after; `None` for a first rung."""
    return find_kernel(kernel.after) if kernel.after else None


def _speed(result: Result) -> Speed:
    timings = {(sample.process, sample.round): sample.time_us for sample in result.samples}
    middle = spread(list(timings.values())).median
    kernel = result.contestant.removeprefix("kernel:").partition("[")[0] if result.facts["role"] == "rung" else ""
    config = with_defaults(kernel, result.facts.get("config", {}))
    return Speed(
        contestant=result.contestant, kernel=kernel, size=result.label, config=config,
        time_us=middle, tflops=result.flops / middle / 1e6, right=result.verified is not False, facts=result.facts,
        timings=timings,
    )  # fmt: skip
