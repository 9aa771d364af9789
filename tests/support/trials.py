"""Random trials: each has a generator of its own, made from the seed, the test's name and the trial's number."""

import time
import zlib
from collections.abc import Iterator

import numpy as np


class Trials:
    """Generators for the trials of one fuzzer, until its seconds are over; at least one.

    `rerun` is the pair of options that repeats the trial that was handed out last.
    """

    def __init__(self, seed: int, test: str, seconds: float, only: int | None = None) -> None:
        self.seed, self.test, self.seconds, self.only = seed, test, seconds, only
        self.number = 0

    def __iter__(self) -> Iterator[np.random.Generator]:
        if self.only is not None:
            self.number = self.only
            yield self._generator()
            return
        end = time.monotonic() + self.seconds
        for number in range(2**62):
            if number and time.monotonic() > end:
                return
            self.number = number
            yield self._generator()

    @property
    def rerun(self) -> str:
        return f"--fuzz-seed={self.seed} --fuzz-trial={self.number}"

    def _generator(self) -> np.random.Generator:
        return np.random.default_rng([self.seed, zlib.crc32(self.test.encode()), self.number])
