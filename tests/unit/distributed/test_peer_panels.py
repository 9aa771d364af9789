"""Panels that ranks copy into each other's memory: no order of copies and products gives a wrong panel.

The ranks' streams are lists of steps here, and a random order of all steps that the waits allow is run. A product
looks at its panel when it begins and when it ends.
"""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")

import torch

from gemmlab.core.precision import FLOAT_BYTES
from gemmlab.distributed import panels as panels_module
from gemmlab.distributed.panel_turns import Turn, pieces, turns_of_ranks, without
from gemmlab.distributed.panels import Panel
from gemmlab.distributed.peer_memory import ARRIVED, READY, SLOTS, Rectangle
from gemmlab.distributed.peer_panels import PeerPanels
from gemmlab.distributed.placements import share
from gemmlab.distributed.traffic import Traffic

SLOT = 4096
Step = Callable[[], bool]
"""Does one step of a stream; false, without an effect, while the step has to wait."""


@dataclass
class Ranks:
    """The memory and the streams of all ranks."""

    count: int
    slots: list[torch.Tensor] = field(init=False)
    flags: list[list[list[int]]] = field(init=False)
    streams: list[list[Step]] = field(init=False)
    """For each rank: products of even and of odd turns, and copies to each rank."""

    def __post_init__(self) -> None:
        self.slots = [torch.full((SLOTS * SLOT,), float("nan")) for _ in range(self.count)]
        self.flags = [[[0] * self.count for _ in (ARRIVED, READY)] for _ in range(self.count)]
        self.streams = [[] for _ in range((2 + self.count) * self.count)]

    def run(self, order: random.Random) -> None:
        waiting = [list(reversed(stream)) for stream in self.streams]
        while any(waiting):
            ready = [stream for stream in waiting if stream]
            order.shuffle(ready)
            assert any(stream[-1]() and stream.pop() for stream in ready), "all streams wait"


class Memory:
    """The part of `PeerMemory` that panels use, on lists of steps."""

    def __init__(self, all_ranks: Ranks, own: int) -> None:
        self._all, self.ranks, self.own, self.count = all_ranks, all_ranks.count, own, 0
        each = 2 + self.ranks
        even, odd, *self._copies = all_ranks.streams[each * own : each * (own + 1)]
        self._products, self.current = (even, odd), even
        self._told = [0, 0]
        """Numbers of calls of `tell_ready` that were queued and that are complete."""
        self._calls, self._sent = 0, [0] * self.ranks

    def alternate(self, turn: int) -> None:
        self.current = self._products[turn % 2]

    def reserve(self, slot_bytes: int) -> None:
        assert slot_bytes <= SLOT * FLOAT_BYTES

    def slot(self, number: int, shape: tuple[int, int]) -> torch.Tensor:
        first = number % SLOTS * SLOT
        return self._all.slots[self.own][first : first + shape[0] * shape[1]].view(shape)

    def send(self, rank: int, number: int, offset: int, pitch: int, source: Rectangle) -> None:
        start = self._all.slots[rank].data_ptr() + number % SLOTS * SLOT * FLOAT_BYTES + offset
        for row in range(source.height):
            self._copies[rank].append(
                lambda row=row: bool(  # type: ignore[misc]
                    ctypes.memmove(start + row * pitch, source.address + row * source.pitch, source.width)
                )
            )

    def open(self, count: int, _begun: None) -> None:
        before = self._told[0]
        self._copies[self.own].append(lambda: self._told[1] == before)
        for rank in range(self.ranks):
            self._tell(self._copies[self.own], READY, rank, count)

    def tell_ready(self, count: int) -> None:
        before, self._told[0] = self._told[0], self._told[0] + 1
        self.current.append(lambda: self._told[1] == before)
        for rank in range(self.ranks):
            self._tell(self.current, READY, rank, count)
        self.current.append(self._complete)

    def await_ready(self, rank: int, count: int) -> None:
        self._copies[rank].append(lambda: self._all.flags[self.own][READY][rank] >= count)

    def tell_arrived(self, rank: int, count: int) -> None:
        self._tell(self._copies[rank], ARRIVED, rank, count)

    def await_arrived(self, count: int) -> None:
        self.current.append(lambda: min(self._all.flags[self.own][ARRIVED]) >= count)

    def meet(self) -> None:
        self._calls += 1
        for rank, stream in enumerate(self._copies):
            stream.append(lambda rank=rank: self._note_sent(rank))  # type: ignore[misc]

    def _note_sent(self, rank: int) -> bool:
        self._sent[rank] += 1
        return True

    def join(self, then: Step) -> None:
        """Queue `then` behind the products and the copies to other ranks."""
        calls, ready = self._calls, self._told[0]
        self._products[0].append(lambda: min(self._sent) >= calls and self._told[1] >= ready)
        self._products[0].append(then)

    def _complete(self) -> bool:
        self._told[1] += 1
        return True

    def _tell(self, stream: list[Step], kind: int, rank: int, count: int) -> None:
        def tell() -> bool:
            self._all.flags[rank][kind][self.own] = count
            return True

        stream.append(tell)


def same(found: torch.Tensor, expected: torch.Tensor) -> bool:
    assert torch.equal(found, expected)
    return True


def multiply_all(memory: Memory, whole: torch.Tensor, everyone: list[list[Panel]], *, of_a: bool) -> Traffic:
    """Queue one rank's part of a product, as `in_turns.product_in_turns` does; `whole` has k first."""
    depth, traffic, panels = whole.shape[0], Traffic(), everyone[memory.own]
    shares = [share(depth, memory.ranks, rank) for rank in range(memory.ranks)]
    own = shares[memory.own]
    local = whole[own.start : own.stop].clone()
    local = local.t().contiguous().t() if of_a else local
    source = PeerPanels(local, shares, everyone, memory, traffic, None, of_a=of_a)
    source.start(0)
    for turn, now in enumerate(panels):
        memory.alternate(turn)
        found = source.take(turn)
        if turn + 1 < len(panels):
            source.start(turn + 1)
        expected = whole[now.terms.start : now.terms.stop, now.lines.start : now.lines.stop]
        for read in now.read:
            at = slice(read.start - now.terms.start, read.stop - now.terms.start)
            for _ in ("begins", "ends"):
                memory.current.append(lambda found=found[at], expected=expected[at]: same(found, expected))  # type: ignore[misc]
        source.finish(turn)
    memory.meet()
    memory.join(lambda: written_over(local, source))
    return traffic


def written_over(local: torch.Tensor, _source: PeerPanels) -> bool:
    """After the call the operand is the caller's again, and not before."""
    local.fill_(float("nan"))
    return True


def cut(depth: int, lines: int, terms_each: int, lines_each: int, multiplied: range) -> list[Panel]:
    """The panels of an operand; `multiplied` are terms that the rank has multiplied before."""
    found = []
    for some in pieces(range(lines), lines_each):
        for terms in pieces(range(depth), terms_each):
            left = without(Turn(terms, some, range(0), (terms,)), multiplied)
            found.append(Panel(terms, some, left.parts))
    return found


def cut_apart(depth: int, lines: int, terms_each: int, ranks: int) -> list[list[Panel]]:
    """The panels of each rank if it receives the other ranks' terms alone, in an order of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(panels_module, "WORDS", terms_each * lines)
        turns = turns_of_ranks(
            1, lines, depth, sends_a=False, sends_b=True, fixed=False, by_terms=True, apart=True,
            shares=[share(depth, ranks, rank) for rank in range(ranks)],
        )  # fmt: skip
    return [[Panel(turn.terms, turn.columns, turn.parts) for turn in each] for each in turns]


CALL = st.tuples(*[st.integers(1, 14)] * 4, st.booleans(), st.sampled_from(["all", "others", "apart"]))


@given(st.integers(1, 4), st.lists(CALL, min_size=1, max_size=3), st.integers(0, 2**32))  # fmt: skip
def test_every_product_meets_its_panel(
    ranks: int, calls: list[tuple[int, int, int, int, bool, str]], seed: int
) -> None:  # fmt: skip
    everyone = Ranks(ranks)
    memories = [Memory(everyone, own) for own in range(ranks)]
    for depth, lines, terms_each, lines_each, of_a, read in calls:
        whole: Any = torch.rand((depth, lines), generator=torch.Generator().manual_seed(seed))
        apart = read == "apart" and ranks > 1
        if apart:
            panels = cut_apart(depth, lines, terms_each, ranks)
        else:
            own = [range(0) if read == "all" else share(depth, ranks, rank) for rank in range(ranks)]
            panels = [cut(depth, lines, terms_each, lines_each, each) for each in own]
        counted = [multiply_all(memory, whole, panels, of_a=of_a) for memory in memories]
        assert sum(one.received for one in counted) == (ranks - 1) * whole.nbytes
        most = SLOTS * terms_each * (lines if apart else lines_each) * FLOAT_BYTES
        assert all(one.largest_buffer <= most for one in counted)
    everyone.run(random.Random(seed))  # noqa: S311 - an order of steps
