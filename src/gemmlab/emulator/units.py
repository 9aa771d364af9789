"""Units that the machine runs: a block, or a cluster's blocks, which are resident together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from gemmlab.emulator.asynchronous.engine import Engine
from gemmlab.emulator.geometry import Bytes, Geometry
from gemmlab.emulator.layout import Block, Status, Warp
from gemmlab.emulator.loop import ROUNDS, TURN
from gemmlab.emulator.resident import Resident


class Unit(Protocol):
    """Blocks that run together: a `Resident` or a `Cluster`. The methods are described there."""

    size: int
    """Bytes of the structure of one warp (`Warp`)."""
    warps: Bytes
    """The structures of all warps, one in each row."""

    @property
    def blocks(self) -> list[Resident]: ...
    @property
    def epoch(self) -> int: ...
    @property
    def executed(self) -> int: ...
    @property
    def states(self) -> list[int]: ...
    def begin(self, number: int) -> None: ...
    def run(self, turn: int = TURN, most: int = ROUNDS) -> int: ...
    def excuse(self) -> bool: ...
    def pc(self, warp: int) -> int: ...
    def places(self) -> tuple[tuple[int, int, int], ...]: ...
    def unmet(self) -> Iterator[tuple[int, int, int, int]]: ...
    def next_places(self) -> list[list[int]]: ...
    def state(self) -> bytes: ...
    def barriers(self) -> bytes: ...


def unit(geometry: Geometry, launch_address: int, engine: Engine | None) -> Unit:
    """Return a new unit for a launch: a `Resident`, or a `Cluster` if the launch has an engine or clusters of several
    blocks.
    """
    if engine is None and math.prod(geometry.cluster) == 1:
        return Resident(geometry, launch_address)
    return Cluster(geometry, launch_address, engine)


class Cluster(Resident):
    """The blocks of a cluster, and the engine of their asynchronous operations. A cluster may have one block."""

    def __init__(self, geometry: Geometry, launch_address: int, engine: Engine | None) -> None:
        count = math.prod(geometry.cluster)
        threads = math.prod(geometry.threads)
        warps = -(-threads // 32)
        self.size = Warp.size(geometry.registers)
        self.geometry = geometry
        self.engine = engine
        self.warps = np.zeros((count * warps, self.size), np.uint8)
        self.block = np.zeros((count, Block.SIZE), np.uint8).reshape(-1)
        blocks = self.block.reshape(count, Block.SIZE)
        rows = self.warps.reshape(count, warps, self.size)
        self.members = [Resident(geometry, launch_address, rank, (blocks[rank], rows[rank])) for rank in range(count)]
        self._done: list[bool] = [False] * count

    @property
    def blocks(self) -> list[Resident]:
        return self.members

    @property
    def linear(self) -> int:
        return self.members[0].linear

    @property
    def epoch(self) -> int:
        return sum(member.epoch for member in self.members)

    def begin(self, number: int) -> None:
        """Reset the state to the start of cluster number `number`."""
        shape = [extent // size for extent, size in zip(self.geometry.grid, self.geometry.cluster, strict=True)]
        corner = _position(number, shape)
        for rank, member in enumerate(self.members):
            inner = _position(rank, self.geometry.cluster)
            x, y, z = (c * size + i for c, size, i in zip(corner, self.geometry.cluster, inner, strict=True))
            member.begin(x + self.geometry.grid[0] * (y + self.geometry.grid[1] * z))
            self._done[rank] = False
        starts = [member.start for member in self.members]
        for member in self.members:
            member.meet(starts)
        if self.engine is not None:
            self.engine.begin(self.members)

    def run(self, turn: int = TURN, most: int = ROUNDS) -> int:
        """Give all blocks at most `most` rounds of turns of `turn` instructions; return a `Status`, as for a block.

        Raises the exception, if any, that occurred in the engine.
        """
        for _ in range(most):
            before = self.epoch
            found = [self._run(rank, turn) for rank in self._order() if not self._done[rank]]
            if self.engine is not None and self.engine.error is not None:
                raise self.engine.error
            if Status.FAULT in found:
                return Status.FAULT
            if all(self._done):
                return Status.DONE
            if self.epoch == before and self.engine is not None and self.engine.land_rest(self.members):
                continue
            if self.epoch == before:
                return Status.SPENT if {Status.SPENT, Status.PAUSED} & set(found) else Status.BLOCKED
        return Status.PAUSED

    def _order(self) -> Sequence[int]:
        ranks = range(len(self.members))
        return ranks if self.engine is None else self.engine.order(ranks)

    def _run(self, rank: int, turn: int) -> int:
        status = self.members[rank].run(turn, 1)
        if status == Status.DONE:
            self._done[rank] = True
            if self.engine is not None:
                self.engine.end(self.members[rank])
        return status

    def excuse(self) -> bool:
        """Let warps go on if all wait, as `Engine.excuse` does; return whether any can. False without an engine."""
        return self.engine is not None and self.engine.excuse(self.members)

    def places(self) -> tuple[tuple[int, int, int], ...]:
        return tuple(place for member in self.members for place in member.places())

    def unmet(self) -> Iterator[tuple[int, int, int, int]]:
        for member in self.members:
            yield from member.unmet()

    def barriers(self) -> bytes:
        return b"".join(member.barriers() for member in self.members)


def _position(number: int, shape: list[int] | tuple[int, int, int]) -> tuple[int, int, int]:
    return number % shape[0], number // shape[0] % shape[1], number // (shape[0] * shape[1])


def members(waiting: list[Unit]) -> list[Resident]:
    """Return the blocks of all units."""
    return [block for each in waiting for block in each.blocks]
