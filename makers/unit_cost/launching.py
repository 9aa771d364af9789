"""Measure whole launches with cold caches: empty ones, one after another, little ones, and reads of memory."""

from __future__ import annotations

import numpy as np

from gemmlab.core.program import Launch
from gemmlab.devices.device import SequenceDevice, Window
from unit_cost import mixes
from unit_cost.codes import ARGUMENTS, NOTHING, READ_FAR
from unit_cost.machine import FULL, WORD, Row, Runner, spread

REPEATS, MOST_LAUNCHES, READS = 200, 4, 4
THREADS, BLOCKS_OF_SM = 512, 4
FOUR = 4
"""Words of 16 bytes."""


def run_empty(runner: Runner, count: int) -> Row:
    """Return the microseconds between two events around so many launches of an empty kernel; on the emulator, which
    times no sequences, of one.
    """
    launch = Launch((), (1, 1, 1), (32, 1, 1))
    if isinstance(runner.device, SequenceDevice):
        us = runner.device.time_launches(runner.loaded(NOTHING), [launch] * count, REPEATS)
    else:
        us = runner.times(NOTHING, launch, 1)
    return {"label": f"{count} empty", "launches": count, "us": spread(np.array(us))}


def run_arguments(runner: Runner) -> Row:
    """Return the microseconds of a launch that looks at its arguments and ends."""
    launch = Launch((runner.sink, np.int32(1)), (1, 1, 1), (32, 1, 1))
    us = runner.times(ARGUMENTS, launch, REPEATS if runner.extent is FULL else 1)
    return {"label": "arguments", "us": spread(np.array(us))}


def run_once(runner: Runner, fmas: int) -> Row:
    """Return the microseconds of a launch of a warp that executes so many FFMAs in a row, once."""
    when, host = runner.out(mixes.RECORD, np.uint64)
    launch = Launch((when, runner.data, runner.sink, np.int32(1)), (1, 1, 1), (32, 1, 1))
    us = runner.times(f"code<{fmas}>", launch, REPEATS if runner.extent is FULL else 1)
    runner.fetch(when, host)
    return {"label": f"{fmas} FFMAs once", "code_bytes": 16 * fmas, "us": spread(np.array(us))}


def run_read(runner: Runner, words: int) -> Row:
    """Return the microseconds of a launch that reads so many words of device memory, each once."""
    source = Window(runner.cold, 0, WORD * words)
    args = (source, np.uint32(words // FOUR), runner.sink)
    launch = Launch(args, (BLOCKS_OF_SM * runner.extent.sms, 1, 1), (THREADS, 1, 1))
    us = runner.times(READ_FAR, launch, runner.extent.repeats)
    return {"label": f"read {words} words", "bytes": WORD * words, "us": spread(np.array(us))}


def sizes(runner: Runner) -> list[int]:
    """Return the numbers of words that are read: parts of the memory that L2 does not hold, an eighth of it to all."""
    return [runner.extent.cold_words >> shift for shift in reversed(range(READS))]
