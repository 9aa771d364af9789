"""How asynchronous copies are counted, in plain Python: `emulator.copy_counts`, and a counter of the hardware's.

The hardware's counter of sectors read (`l1tex__t_sectors_pipe_lsu_mem_global_op_ld`) sees copies under a guard too:
past L1 it has those of the target, line by line of the source, through L1 those of the source.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

SECTOR, LINE = 32, 128


@dataclass(frozen=True, slots=True)
class Copied:
    """One execution of a copy by a warp."""

    wavefronts: int = 0
    ideal: int = 0
    sectors: int = 0
    read: int = 0
    """Sectors by the hardware's counter."""


def counted(text: str, width: int, lanes: Mapping[int, tuple[int, int]]) -> Copied:
    """Of `LDGSTS` as nvdisasm prints it; `lanes`: addresses of source and target by number of the lanes that copy."""
    ideal = -(-width * len(lanes) // LINE)
    if "BYPASS" not in text:
        groups: dict[int, list[tuple[int, int]]] = {}
        for lane, pair in lanes.items():
            groups.setdefault(width * lane // LINE, []).append(pair)
        wavefronts = sum(fullest(width, read) + fullest(width, written) - 1
                         for read, written in (zip(*group, strict=True) for group in groups.values()))  # fmt: skip
        sectors = len({source // SECTOR for source, _target in lanes.values()})
        return Copied(wavefronts, ideal, sectors, sectors)
    read = len({(source // LINE, target // SECTOR) for source, target in lanes.values()})
    if text.startswith("@P0 "):
        return Copied(read=read)
    parts: dict[int, list[int]] = {}  # sectors of the target by sector of the source, in the order of lanes
    ways = set()
    for source, target in lanes.values():
        found = parts.setdefault(source // SECTOR, [])
        if target // SECTOR not in found:
            found.append(target // SECTOR)
        ways.add((source // LINE, target // LINE, found.index(target // SECTOR)))
    return Copied(len(ways), ideal, sum(map(len, parts.values())), read)


def fullest(width: int, addresses: Iterable[int]) -> int:
    """Distinct words in the fullest of 32 banks."""
    banks: dict[int, set[int]] = {}
    for address in addresses:
        for word in range(address // 4, (address + width) // 4):
            banks.setdefault(word % 32, set()).add(word)
    return max(map(len, banks.values()))
