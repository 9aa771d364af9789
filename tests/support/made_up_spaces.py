"""Recorded spaces made up for tests: times that depend on the parameters in a known way."""

from __future__ import annotations

import itertools
import math
import random

from gemmlab.tuning.replay import Recorded, RecordedSpace
from gemmlab.tuning.space import Space

NAMES = ("BM", "BN", "BK", "TM")
VALUES = ((32, 64, 128, 256), (32, 64, 128, 256), (4, 8, 16, 32), (2, 4, 8, 16))
BEST = (128, 64, 16, 8)


def valley(
    *, faults: float = 0.0, wrong: float = 0.0, noise: float = 0.0, seed: int = 0, turns: int = 3, builders: int = 2
) -> RecordedSpace:
    """Return a space whose times rise with the distance from `BEST`; a share of it has faults or is wrong."""
    draw = random.Random(seed)  # noqa: S311 - made-up times
    members = tuple(itertools.product(*VALUES))
    outcomes = []
    for values in members:
        far = sum(abs(math.log2(a / b)) for a, b in zip(values, BEST, strict=True))
        us = 100.0 * math.exp(0.2 * far)
        lot = 1.0 if values == BEST else draw.random()
        if lot < faults:
            outcomes.append(Recorded((), "does not compile", build_s=1.0))
        elif lot < faults + wrong:
            outcomes.append(Recorded((1.0,), "wrong result", True, 1.0, 0.2))
        else:
            times = tuple(us * math.exp(draw.gauss(0.0, noise)) for _ in range(turns))
            outcomes.append(Recorded(times, "", False, 1.0, 0.2, 0.05))
    return RecordedSpace("valley", Space(NAMES, members), tuple(outcomes), builders)
