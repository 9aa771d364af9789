"""The time that a product takes at least on the recorded GPU, from probes: to say what a speed could be."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from blocks.records import load
from gemmlab.core.records import Result

READS = "h200/reduce.json"
"""The record with the times of `reduce_peak`, which does nothing but read, with cold caches."""
PROBE = "kernel:reduce_peak"
TFLOPS = 58.0
"""Rate of multiply-adds in float32 that no kernel was found to exceed on this GPU."""


def least_us(result: Result) -> float:
    """Return the time of reading as many bytes as a product reads and writes, or a launch and its multiply-adds at
    `TFLOPS`, whichever is longer, in microseconds. Raises `FileNotFoundError` without the record of the probe.
    """
    launch = _probed()[1][0]
    return max(reading_us(result.bytes), launch + result.flops / TFLOPS / 1e6)


def reading_us(nbytes: int) -> float:
    """Return the time in which the probe reads `nbytes` bytes with cold caches, in microseconds.

    Raises `FileNotFoundError` without its record.
    """
    return float(np.interp(nbytes, *_probed()))


@cache
def _probed() -> tuple[Sequence[float], Sequence[float]]:
    record = load(READS)
    if record is None:
        raise FileNotFoundError(f"no record {READS}")
    known = sorted((one.bytes, one.median_us) for one in record.results if one.contestant == PROBE and one.median_us)
    return [float(size) for size, _ in known], [float(us) for _, us in known if us]
