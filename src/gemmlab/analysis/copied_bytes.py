"""Bytes that the copy engine copies into shared memory; counters of the threads' accesses do not include them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gemmlab.core.counters import Counters
from gemmlab.core.program import Launch
from gemmlab.core.tensor_map import BYTES, box_bytes
from gemmlab.kernels.cuda_file.c_types import MAP_TYPES

_TENSOR, _BULK = "UTMALDG", "UBLKCP.S.G"
"""Opcodes that copy into shared memory: boxes of tensors, and contiguous bytes. (UBLKCP.G.S copies from it.)"""


@dataclass(frozen=True, slots=True)
class Copied:
    """Bytes that tensor copies bring into shared memory in one run, and the number of copies of unknown size."""

    least: int = 0
    """Bytes of tensor copies, if each copies the smallest box of the launch's tensor maps."""
    most: int = 0
    """Bytes of tensor copies, if each copies the largest box of the launch's tensor maps."""
    unknown: int = 0
    """Number of copies of unknown size: bulk copies, whose size is in a register, and tensor copies of a launch without
    tensor maps.
    """

    @property
    def words(self) -> str:
        """Words that say how the bytes of these copies were counted; empty without copies."""
        boxes = "boxes of tensor maps" if self.most else ""
        return " and ".join(filter(None, [boxes, "operands once for bulk copies" if self.unknown else ""]))


def copied_bytes(counters: Counters, launch: Launch) -> Copied:
    """Return bounds of the bytes that tensor copies bring into shared memory, and the number of copies of unknown size.

    `counters` say how many copies a run executed. A tensor copy has the size of a box of one of the tensor maps among
    `launch.args`: the smallest box gives the lower bound, the largest one the upper bound. Arguments of several maps
    (`FourMaps`) do not count as tensor maps.
    """
    sizes = [count * BYTES for count in MAP_TYPES.values()]
    maps = [one.tobytes() for one in launch.args if isinstance(one, np.void) and one.nbytes in sizes]
    boxes = [box_bytes(one[at : at + BYTES]) for one in maps for at in range(0, len(one), BYTES)]
    copies, unknown = (
        sum(site.executed for site in counters.sites if site.opcode.startswith(opcode)) for opcode in (_TENSOR, _BULK)
    )
    if not boxes:
        return Copied(unknown=unknown + copies)
    return Copied(copies * min(boxes), copies * max(boxes), unknown)
