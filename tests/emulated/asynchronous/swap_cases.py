"""Atomic operations on shared cells of the same banks: the order in which a warp's lanes are served."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from one_cubin import one_cubin

from gemmlab import launch

KERNELS = Path(__file__).parent / "swap_bits.cu"
OPERATIONS = ("float_add", "integer_add", "compare", "exchange")
LANES, BANKS, CELLS = 32, 32, 1024
NONE = CELLS
"""The place of a lane that takes no part."""
_LANE = np.arange(LANES)
PLACES = {
    "apart": _LANE,
    "one": np.zeros(LANES, np.int64),
    "two": np.where(_LANE < 2, 0, NONE),
    "three": np.where(_LANE < 3, 0, NONE),
    "four": np.where(_LANE < 4, 0, NONE),
    "eight": np.where(_LANE < 8, 0, NONE),
    "pairs": _LANE // 2,
    "halves": _LANE % 16,
    "quarters": _LANE % 4,
    "bank": BANKS * _LANE,
    "bank_of_two": np.where(_LANE < 2, BANKS * _LANE, NONE),
    "bank_of_four": np.where(_LANE < 4, BANKS * _LANE, NONE),
    "bank_of_eight": np.where(_LANE < 8, BANKS * _LANE, NONE),
    "two_rows": 2 * _LANE,
    "four_rows": 4 * _LANE,
    "mixed": (_LANE * 7 % 16) * 16,
    "backwards": (LANES - 1 - _LANE) // 4 * BANKS,
}
"""By name: the cell of each lane."""
_FIRST_TURN, _TURN, _SOME_LANES = 120, 95, 53
"""Cycles of an H200: the first turn with the clocks, each other one, a branch around lanes that take no part."""
Words = npt.NDArray[np.uint32]


def swaps(device: str, operation: str, place: str) -> Words:
    """The old value that each lane saw, the least cycles that it waited, and the cells afterwards."""
    empty = [np.zeros(size, np.uint32) for size in (LANES, CELLS, LANES)]
    code = one_cubin(str(KERNELS), "compare", device)
    done: Any = launch(code, operation, 1, LANES, [PLACES[place].astype(np.uint32), *empty], device=device,
                       timeout_s=10)  # fmt: skip
    _place, old, sums, cycles = done.outputs
    return np.concatenate([old, cycles, sums])


def loop_cycles(place: str) -> int:
    """The cycles of the loop of a float's atomic sum. Each turn serves the lowest lane of each bank.

    A turn costs two cycles more for each further cell of a bank that waits: its load and update together.
    """
    waiting = [(lane, cell) for lane, cell in enumerate(PLACES[place].tolist()) if cell != NONE]
    spent = _FIRST_TURN + _SOME_LANES * (len(waiting) < LANES) - _TURN
    while waiting:
        banks = [[each for each in waiting if each[1] % BANKS == bank] for bank in {at % BANKS for _, at in waiting}]
        spent += _TURN + 2 * (max(len({cell for _, cell in bank}) for bank in banks) - 1)
        waiting = sorted(set(waiting) - {min(bank) for bank in banks})
    return spent
