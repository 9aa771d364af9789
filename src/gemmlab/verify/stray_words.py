"""A test of whether unwritten memory that a kernel reads reaches its results.

A kernel may bring a tile too many into shared memory, or read ahead in its last step, and never use what it read. The
run is repeated with other contents of all unwritten memory: NaN, large and small numbers. If every word of every
operand stays the same, and every instruction is executed as often, what was read had no part in what the kernel did.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gemmlab.core.counters import Observation
from gemmlab.core.hazard import UNWRITTEN, Hazard
from gemmlab.core.hazard_source import with_source
from gemmlab.kernels.bound import PlacedKernel
from gemmlab.ops.op import Contents, Op, Problem
from gemmlab.verify.guarded_run import GuardedRun
from gemmlab.verify.guards import GuardedBuffer

FILLINGS = (0xFF, 0x7B, 0xFB, 0x3F)
"""Bytes that unwritten memory holds in turn: NaN (or -1), large numbers of either sign in every floating type, and
0.747 as a float, 4.8e-4 as a double, 1.81 as a half.
"""


def without_stray(
    placed: PlacedKernel, op: Op, problem: Problem, contents: Contents, observation: Observation,
    left: Mapping[str, GuardedBuffer], *, shift: int = 0,
) -> tuple[tuple[Hazard, ...], tuple[str, ...]]:  # fmt: skip
    """Return the hazards of a run that remain, and in words the reads of unwritten memory that reach no result.

    If the run has only such reads, no hazard remains. If it has any other hazard, or if other contents of unwritten
    memory change an operand or how often an instruction runs, all hazards remain, and there are no words. `left` are
    the operands after the run, `shift` is the run's (`GuardedRun`).
    """
    hazards = observation.hazards
    if not hazards or any(hazard.kind != UNWRITTEN for hazard in hazards):
        return hazards, ()
    for filling in FILLINGS:
        again = GuardedRun(placed, op, problem, contents, shift=shift)
        outcome = again.run(filling=filling)
        same = all(np.array_equal(again.guarded[name].words, buffer.words) for name, buffer in left.items())
        if not same or outcome is None or _steps(outcome) != _steps(observation):
            return hazards, ()
    return (), tuple(dict.fromkeys(map(_words, with_source(hazards))))


def _steps(observation: Observation) -> object:
    """Return how often every instruction was executed, and the kinds of hazards."""
    sites = tuple((site.address, site.executed) for site in observation.counters.sites)
    return sites, frozenset(hazard.kind for hazard in observation.hazards)


def _words(hazard: Hazard) -> str:
    where = f"{hazard.file or hazard.kernel}:{hazard.line}" if hazard.line else hazard.kernel
    text = f" `{hazard.text}`" if hazard.text else ""
    return f"reads {hazard.space} memory that nothing has written at {where}{text}, which reaches no result"
