"""Count the sectors and wavefronts of one access by the emulator's rule, and group the lanes that are served
together.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from gemmlab.core.trace import LANES, Access
from gemmlab.emulator.address_space import STORE
from gemmlab.emulator.instruction_layout import Insn
from gemmlab.emulator.memo import Memo
from gemmlab.emulator.services import service_addresses

SECTOR, LINE = 32, 128
SHARED_BYTES = 128
"""Bytes that shared memory delivers in one wavefront."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """Costs of a warp's access: wavefronts as if all of it were in shared memory, sectors as if in global memory."""

    wavefronts: int
    ideal: int
    """Wavefronts without bank conflicts."""
    sectors: int
    """Sectors of 32 bytes in global memory."""


def pattern_of(access: Access, lanes: Iterable[int] | None = None) -> Pattern:
    """Return the costs of an access by all its active lanes, or only by those of them that are in `lanes`."""
    chosen = (lane for lane in (access.lanes if lanes is None else lanes) if access.on >> lane & 1)
    return pattern_at({lane: access.addresses[lane] for lane in chosen}, access.width, store=access.store)


def pattern_at(addresses: Mapping[int, int], width: int, *, store: bool) -> Pattern:
    """Return the costs of an access of `width` bytes per lane; `addresses` are those of the active lanes, by lane."""
    if not addresses:
        return Pattern(0, 0, 0)
    relative = np.zeros(LANES, np.int32)
    chosen = [*addresses]
    base = addresses[chosen[0]]
    relative[chosen] = [address - base for address in addresses.values()]
    record = np.zeros(Insn.SIZE, np.uint8)
    mask = sum(1 << lane for lane in chosen)
    key = width + STORE * store
    _analyse()(record.ctypes.data, relative.ctypes.data, mask, base % SECTOR, key)
    words = record.view(np.int32)
    wavefronts, ideal, sectors = (int(words[at // 4]) for at in (Memo.WAVEFRONTS, Memo.IDEAL, Memo.SECTORS))
    return Pattern(wavefronts, ideal, sectors)


def served_together(access: Access) -> tuple[tuple[int, ...], ...]:
    """Return the groups of active lanes that share wavefronts of shared memory.

    A group is the warp, for accesses of 8 bytes per lane a half of it, of 16 bytes a quarter. Two adjacent groups are
    one if the hardware merges them. Groups without active lanes are left out.
    """
    size = min(LANES, max(8, SHARED_BYTES // access.width))
    groups = [range(first, first + size) for first in range(0, LANES, size)]
    found: list[Sequence[int]] = []
    for pair in (groups[at : at + 2] for at in range(0, len(groups), 2)):
        together = [lane for group in pair for lane in group]
        apart = [pattern_of(access, group).wavefronts for group in pair]
        merged = all(apart) and pattern_of(access, together).wavefronts < sum(apart)
        found += [together] if merged else pair
    alone = (tuple(lane for lane in group if access.on >> lane & 1) for group in found)
    return tuple(group for group in alone if group)


@cache
def _analyse() -> Callable[[int, int, int, int, int], None]:
    prototype = ctypes.CFUNCTYPE(
        None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_int32
    )
    return prototype(service_addresses()["analyse"])
