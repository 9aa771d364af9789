"""The protocol between a search and its bench, which is a device, an emulator or a record, and the outcomes in it.

A configuration is named by its number in the space, `place`. Compilation runs in the background: `submit` starts it,
`build` waits for it. All times of the protocol, apart from those of the kernel, are seconds of the bench's own clock,
which a recorded space replays without waiting.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Build:
    """The outcome of compiling one configuration."""

    place: int
    """Number of the configuration in the space."""
    fault: str = ""
    """The reason why there is no code that the device can run; empty if there is."""
    seconds: float = 0.0
    """Time of the compilation; 0 if another configuration with the same program had it already."""
    facts: Mapping[str, float] = field(default_factory=dict)
    """`registers`, `smem_bytes`, `spill_bytes`, `blocks_per_sm` and the like, as far as they are known."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The comparison of a configuration's result with the float64 reference."""

    place: int
    right: bool
    fault: str = ""
    """The reason why the result is wrong, or why there is no result; empty for a right result."""
    seconds: float = 0.0
    """Time of the run and of the comparison together."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a configuration on the device."""

    place: int
    us: float = 0.0
    """Median time of a call, microseconds; for several problems, the geometric mean of the medians."""
    fault: str = ""
    """The reason why there is no time; empty if there is one."""
    seconds: float = 0.0
    """Time of the whole turn, its warm-up and all its calls included."""


class Bench(Protocol):
    """A bench for configurations: a device, an emulator by predicted times, or a recorded space."""

    @property
    def seconds(self) -> float:
        """Seconds since the beginning of the search by the bench's clock, compilation included."""

    @property
    def builders(self) -> int:
        """Number of compilations that run at the same time."""

    def submit(self, places: Sequence[int]) -> None:
        """Begin to compile configurations, in this order."""

    def soonest(self, places: Sequence[int], until: float) -> int:
        """Wait until one of these submitted configurations is compiled, at most until the clock shows `until`.

        Returns the first that is compiled, otherwise the first of `places`.
        """

    def build(self, place: int, until: float) -> Build | None:
        """Wait for the compilation of a submitted configuration; `None` if it has not ended when the clock shows
        `until`.
        """

    def verify(self, place: int) -> Verdict:
        """Run a compiled configuration once and compare its result with the reference."""

    def turn(self, place: int) -> Turn:
        """Time one turn of a verified configuration."""
