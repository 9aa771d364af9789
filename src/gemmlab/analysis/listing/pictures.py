"""Pictures of a memory instruction: for one warp's access, the address, bank or sector of each lane."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from gemmlab.core.trace import Access
from gemmlab.plots.pictures.bank_map import Transfer, bank_map
from gemmlab.plots.pictures.transactions import Sector, sectors_of

SHARED = "shared"


@dataclass(frozen=True, slots=True)
class LanePicture:
    """One warp's access: the costliest of an instruction's traced accesses."""

    address: int
    """Byte address of the instruction in the kernel's code."""
    space: str
    """`"shared"`, `"global"` or `"local"`."""
    store: bool
    width: int
    """Bytes that each lane reads or writes."""
    warp: int
    offsets: tuple[int | None, ...] = field(repr=False)
    """Byte offset of each lane's address from the lowest one, `None` for a lane that does not access memory."""
    first: int
    """The lowest address: in shared memory from the block's first byte, in other memory modulo a line of 128 bytes."""
    transfers: tuple[Transfer, ...] = field(repr=False)
    """Shared memory: the lanes that each wavefront serves from each bank."""
    sectors: tuple[Sector, ...] = field(repr=False)
    """Global and local memory: the lanes that access each sector."""
    cost: int
    """Number of wavefronts in shared memory, of sectors in other memory."""
    best: int
    """Fewest wavefronts or sectors that could transfer as many bytes."""


def lane_pictures(accesses: Iterable[Access], shared_low: int) -> dict[tuple[int, str], LanePicture]:
    """Return the costliest access of each instruction, by (instruction address, space).

    An asynchronous copy has two spaces. Of accesses with the same cost, the one with the most lanes is chosen, of these
    the first. `shared_low` is the lowest address of shared memory.
    """
    found: dict[tuple[int, str], LanePicture] = {}
    shapes: set[tuple[int, str, int, tuple[int | None, ...]]] = set()
    for access in accesses:
        low = min(access.addresses[lane] for lane in access.lanes)
        on = set(access.lanes)
        offsets = tuple(access.addresses[lane] - low if lane in on else None for lane in range(len(access.addresses)))
        key = access.site.address, access.space
        shape = (*key, low % 128, offsets)
        if shape in shapes:  # An access at the same place within a line has the same cost.
            continue
        shapes.add(shape)
        picture = _picture(access, low, offsets, shared_low)
        before = found.get(key)
        if before is None or (picture.cost, len(on)) > (before.cost, sum(o is not None for o in before.offsets)):
            found[key] = picture
    return found


def _picture(access: Access, low: int, offsets: tuple[int | None, ...], shared_low: int) -> LanePicture:
    if access.space == SHARED:
        found = bank_map(access)
        return LanePicture(
            access.site.address, access.space, access.store, access.width, access.warp, offsets, low - shared_low,
            found.served, (), found.wavefronts, found.ideal,
        )  # fmt: skip
    sectors = sectors_of(access)
    used = sum(sector.used for sector in sectors)
    return LanePicture(
        access.site.address, access.space, access.store, access.width, access.warp, offsets, low % 128, (), sectors,
        len(sectors), -(-used // 32),
    )  # fmt: skip
