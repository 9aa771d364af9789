"""The device of the experiments: the code of all kernels and the memory that they share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.core.program import Artifact, Launch
from gemmlab.devices.device import Buffer, Device, Window
from unit_cost import latencies, rungs
from unit_cost.codes import TOUCH

WORD = 4
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Extent:
    """The amount of work that runs on a device: turns and repeats of loops, and words of memory."""

    sms: int
    turns: int
    repeats: int
    far_words: int
    """Words that L2 holds: a power of two."""
    cold_words: int
    """Words of memory that L2 does not hold: a power of two."""
    rounds: int
    probes: int
    sizes: tuple[int, ...]


FULL = Extent(132, 100, 3, 1 << 22, 1 << 30, latencies.ROUNDS, 1024, rungs.SIZES)
SHORT = Extent(2, 3, 1, 1 << 20, 1 << 20, 2, 4, (256,))


class Runner:
    """A device with the code of all experiments and the memory that they share."""

    def __init__(self, device: Device, codes: Mapping[str, Artifact], extent: Extent) -> None:
        self.device, self.extent, self._codes = device, extent, codes
        self._fresh = 0
        self._loaded: dict[str, Any] = {}
        self._operands: dict[int, dict[str, Buffer]] = {}
        self.data = device.upload(np.full(extent.far_words + (1 << 16), 1e-9, np.float32))
        size = WORD * extent.cold_words
        # A GPU's memory stays unread; the emulator refuses to read what nothing has written.
        self.cold = device.allocate(size) if device.family == "cuda" else device.upload(np.zeros(size, np.uint8))
        self.sink = device.allocate(256)

    def launch(self, name: str, launch: Launch) -> None:
        """Run the kernel `name` once."""
        self.device.launch(self.loaded(name), launch)

    def loaded(self, name: str) -> Any:
        """Return the loaded kernel `name`."""
        if name not in self._loaded:
            self._loaded[name] = self.device.load(self._codes[name])
        return self._loaded[name]

    def times(self, name: str, launch: Launch, repeats: int) -> list[float]:
        """Return microseconds of runs with cold caches; on the emulator they mean nothing."""
        return self.device.time(self.loaded(name), launch, repeats)

    def out(self, words: int, kind: Any) -> tuple[Buffer, npt.NDArray[Any]]:
        """Return memory of zeros, and an array for a copy of it."""
        host = np.zeros(words, kind)
        return self.device.upload(host), np.empty_like(host)

    def fetch(self, buffer: Buffer, host: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Copy memory of `out` into its array and free it."""
        self.device.download(buffer, host)
        self.device.free(buffer)
        return host

    def unread(self, words: int) -> Window:
        """Return memory that nobody has read since it was last written over: the next part of `cold`, over and over."""
        words = -(-words // 1024) * 1024
        if self._fresh + words > self.extent.cold_words:
            self._fresh = 0
        first, self._fresh = self._fresh, self._fresh + words
        return Window(self.cold, WORD * first, WORD * words)

    def operands(self, size: int) -> dict[str, Buffer]:
        """Return operands of a square product of this extent."""
        if size not in self._operands:
            rng = np.random.default_rng(1)
            self._operands[size] = {name: self.device.upload(rng.random(size * size, np.float32)) for name in "abc"}
        return self._operands[size]

    def touch(self, words: int) -> None:
        """Bring the first words of `data` into L2."""
        self.launch(TOUCH, Launch((self.data, np.uint32(words), self.sink), (2 * self.extent.sms, 1, 1), (256, 1, 1)))


def spread(values: npt.NDArray[Any]) -> Row:
    """Return quantiles of measured values."""
    found = np.quantile(np.asarray(values, np.float64), (0, 0.1, 0.25, 0.5, 0.75, 0.9, 1))
    return dict(
        zip(("least", "p10", "p25", "median", "p75", "p90", "most"), (round(float(v), 3) for v in found), strict=True)
    )
