"""How Nsight Compute's source page counts asynchronous copies, as far as whole launches on an H200 tell.

Found from the totals of async_copy, wmma_tf32_pipelined and mma_tf32_pipelined at 512 and 2048, all of which it gives
exactly. What those leave open the probes of `probes.copies` are for: whether lines of the source or quarters of the
warp are told apart, and what 8 bytes, or conflicts of 4-byte copies, come to.

- 16 bytes past L1 (`LDGSTS.BYPASS`): what arrives is sectors of 32 bytes. A sector whose halves land in two sectors
  counts twice. A wavefront writes what comes from one line of 128 bytes to one such line, second halves that part from
  their first on their own. Under a guard (`@P0`) nothing of this is counted.
- 4 bytes through L1: sectors of the source, and a wavefront for each of its lines; banks play no part.
- The hardware's own counter of sectors read (`l1tex__t_sectors_pipe_lsu_mem_global_op_ld`), guard or not: past L1 those
  of the target, line by line of the source, through L1 those of the source.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass

SECTOR, LINE = 32, 128


@dataclass(frozen=True, slots=True)
class Copied:
    """One execution of a copy by a warp, or the sum of many."""

    wavefronts: int = 0
    ideal: int = 0
    sectors: int = 0
    read: int = 0
    """Sectors by the hardware's counter."""

    def __add__(self, other: Copied) -> Copied:
        pairs = zip(astuple(self), astuple(other), strict=True)
        return Copied(*(mine + theirs for mine, theirs in pairs))


def counted(text: str, width: int, lanes: list[tuple[int, int]]) -> Copied:
    """Of `LDGSTS` as nvdisasm prints it; `lanes`: addresses of source and target of each lane that copies."""
    ideal = -(-width * len(lanes) // LINE)
    if "BYPASS" not in text:
        sources = [source for source, _target in lanes]
        sectors = len({at // SECTOR for at in sources})
        return Copied(len({at // LINE for at in sources}), ideal, sectors, sectors)
    read = len({(source // LINE, target // SECTOR) for source, target in lanes})
    if text.startswith("@"):
        return Copied(read=read)
    parts: dict[int, list[int]] = {}  # sectors of the target by sector of the source, in the order of lanes
    ways = set()
    for source, target in lanes:
        found = parts.setdefault(source // SECTOR, [])
        if target // SECTOR not in found:
            found.append(target // SECTOR)
        ways.add((source // LINE, target // LINE, found.index(target // SECTOR)))
    return Copied(len(ways), ideal, sum(map(len, parts.values())), read)
