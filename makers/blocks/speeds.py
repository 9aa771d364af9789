"""Times of a bench's record, by contestant and size, and the rungs they belong to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
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
    """One contestant at one size."""

    contestant: str
    kernel: str
    """Id, or nothing for a peer."""
    size: str
    config: Mapping[str, int]
    time_us: float
    """Median."""
    tflops: float
    right: bool
    """Not known to be wrong."""
    facts: Mapping[str, Any]
    timings: Timings = field(repr=False)

    def to(self, other: Speed, *, resamples: int = 1) -> Ratio:
        """Speed against another's, over the turns both took; above 1, this one is faster."""
        return ratio_of_medians(other.timings, self.timings, resamples=resamples)


class Speeds:
    """A record's speeds in one precision, the probe and the baseline left out."""

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
        """`"kernel:naive"` or `"cublas"` at `"256x256x256"`."""
        return self._by_place.get((contestant, size))

    def rung(self, kernel: str, size: str) -> Speed | None:
        """A kernel in its reference configuration."""
        return self.at(f"kernel:{kernel}", size)

    def find(self, kernel: str, size: str, config: Mapping[str, int]) -> Speed | None:
        """A kernel in a configuration that has these values."""
        return next(
            (s for s in self.all if s.kernel == kernel and s.size == size and config.items() <= s.config.items()), None
        )

    @property
    def sizes(self) -> list[str]:
        """Square sizes, the smallest first."""
        labels = {speed.size for speed in self.all if len(set(speed.size.split("x"))) == 1}
        return sorted(labels, key=extent)

    @property
    def peers(self) -> list[str]:
        return list(dict.fromkeys(speed.contestant for speed in self.all if not speed.kernel))

    def peak_tflops(self, size: str) -> float | None:
        """The multiply-add peak probed beside a size."""
        for result in self.record.results:
            if result.facts.get("role") == "peak" and result.label == size and result.samples:
                return result.flops / spread([sample.time_us for sample in result.samples]).median / 1e6
        return None


def extent(size: str) -> int:
    """Of a square size."""
    return int(size.partition("x")[0])


def square(n: int) -> str:
    return f"{n}x{n}x{n}"


@cache
def rungs() -> Sequence[Kernel]:
    """The float32 GPU ladder, lowest first."""
    return [kernel for kernel in ladder("gemm", "cuda") if kernel.precision == FLOAT32]


def below(kernel: Kernel) -> Kernel | None:
    """The rung that another comes after."""
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
