"""Single loads behind others and beside traffic: the cases."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

L1, L2, MEMORY, SHARED = "L1", "L2", "memory", "shared"
ROUNDS = 48
STEP = 16384
"""Words from round to round: 64 KB."""
SAME = {"same word": 0, "same sector": 4, "same 64 bytes": 8, "same line": 16, "next line": 32}
"""Words from the first load's word to the last one's, where both are near each other."""


@dataclass(frozen=True, slots=True)
class Behind:
    """A load of `last` behind `misses` loads of `first`, in one warp or, with `warps` > 1, in two of a block."""

    first: str
    last: str
    misses: int = 1
    lanes: int = 32
    near: str = ""
    """Key of `SAME` if the last word lies near the first one."""
    warps: int = 1
    later: int = 0

    @property
    def kernel(self) -> str:
        return "beside" if self.warps > 1 else f"behind<{self.misses}, {int(self.last == SHARED)}>"

    @property
    def label(self) -> str:
        where = f" in warp {self.warps - 1}, {self.later} cycles later" if self.warps > 1 else ""
        return f"{self.last} {self.near or 'elsewhere'} behind {self.misses} x {self.first}, {self.lanes} lanes{where}"


def behind() -> list[Behind]:
    """Return every case of a load behind others."""
    places = (L1, L2, MEMORY)
    found = [Behind(a, b, m, n) for a, b, m, n in product(places, (*places, SHARED), (1, 8), (1, 32))]
    found += [Behind(a, a, near=near) for a in (L2, MEMORY) for near in SAME]
    found += [
        Behind(a, b, warps=warps, later=later) for a, b in product(places, (L1, L2)) for warps in (2, 5)
        for later in (50, 150)
    ]  # fmt: skip
    return found


@dataclass(frozen=True, slots=True)
class Loaded:
    """Latencies of loads from `probe` while `warps` - 1 warps of each SM load from `load`, `depth` at once."""

    probe: str
    load: str
    warps: int
    depth: int
    idle: int = 0
    chasers: int = 1

    @property
    def kernel(self) -> str:
        return f"loaded_latency<{self.depth}>"

    @property
    def label(self) -> str:
        return (
            f"{self.probe} from {self.chasers} SMs beside {self.warps - 1} warps, {self.depth} loads of "
            f"{self.load or 'nothing'} at once, {self.idle} cycles idle"
        )  # fmt: skip


def loaded() -> list[Loaded]:
    """Return every case of loads beside traffic."""
    found = [Loaded(L2, "", 1, 1, chasers=132), Loaded(MEMORY, "", 1, 1), Loaded(MEMORY, "", 1, 1, chasers=132)]
    for probe, load in product((L2, MEMORY), (L2, MEMORY)):
        for warps, depth, idle in (
            (2, 1, 2000), (2, 1, 0), (5, 1, 0), (9, 1, 0), (17, 1, 0), (9, 4, 0), (17, 4, 0), (32, 4, 0),
        ):  # fmt: skip
            found.append(Loaded(probe, load, warps, depth, idle, 4 if probe == L2 else 1))
    return found
