"""Bytes that the copy engine brings into shared memory: no thread asks for them, so no access counts them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gemmlab.core.counters import Counters
from gemmlab.core.program import Launch
from gemmlab.core.tensor_map import BYTES, box_bytes

_TENSOR, _BULK = "UTMALDG", "UBLKCP.S.G"
"""Copies into shared memory: of boxes, and of bytes. UBLKCP.G.S goes the other way."""


@dataclass(frozen=True, slots=True)
class Copied:
    """The bytes of all copies into shared memory in one run."""

    least: int = 0
    """If each copy brings the smallest box of the launch's maps."""
    most: int = 0
    """If each copy brings the largest one."""
    unknown: int = 0
    """Copies whose size is in a register, and so not known."""

    @property
    def words(self) -> str:
        """Return what figures of traffic leave out or suppose; empty without copies."""
        boxes = "boxes of tensor maps" if self.most else ""
        return " and ".join(filter(None, [boxes, "operands once for bulk copies" if self.unknown else ""]))


def copied_bytes(counters: Counters, launch: Launch) -> Copied:
    """Return the bytes that tensor copies bring, by the boxes of the maps that the launch passes."""
    boxes = [box_bytes(one.tobytes()) for one in launch.args if isinstance(one, np.void) and one.nbytes == BYTES]
    copies, unknown = (
        sum(site.executed for site in counters.sites if site.opcode.startswith(opcode)) for opcode in (_TENSOR, _BULK)
    )
    if not boxes:
        return Copied(unknown=unknown + copies)
    return Copied(copies * min(boxes), copies * max(boxes), unknown)
