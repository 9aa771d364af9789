"""The probe that simulates caches: each access of a kernel passes through compiled models of L1, L2 and TLB.

Every level is set-associative with least-recently-used replacement. L1 and L2 write back and allocate on a write; a
dirty line that L1 evicts is written into L2, which allocates it if it is absent. The TLB counts pages. Nothing is
prefetched, and instructions and the stack are not cached. The probe's state is an array of 64-bit words: two banks of
counters, settings, then the tables of the levels. Each set of a level is a row of words with the latest first; a word
is (line number + 1) * 2 + dirty, so that 0 is an empty way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from gemmlab.core.cpu_facts import parse_size
from gemmlab.core.errors import UsageError
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.probe import STATE, accessed_bytes, packs
from gemmlab.ir.types import I64, Type, pointer
from gemmlab.ir.values import Value

LINE = 64
PAGE = 4096
COUNTERS = ("accesses", "bytes", "l1_misses", "l2_misses", "tlb_misses", "l1_written_back", "l2_written_back")
"""Words of a bank, in this order. Bank 0 counts accesses of computing, bank 1 those of packing."""
BANK = 8
"""Words from one bank to the next."""
WORKSPACE, WORKSPACE_END, PACKING, STOP = 16, 17, 18, 19
"""Words of the state: the first address of packed blocks and the one after the last, whether a packing function runs,
and the number of accesses after which the simulation stops, so that the caches keep their contents; 0 for never.
"""
TABLES = 24
"""Index in the probe's state of the first word of the levels' tables."""
_HIT = -1


@dataclass(frozen=True, slots=True)
class Level:
    """A cache (or a TLB, whose lines are pages) of `size` bytes in lines of `line`.

    Raises `UsageError` unless `size` is a positive multiple of `ways` x `line`.
    """

    size: int
    ways: int
    line: int = LINE

    def __post_init__(self) -> None:
        if self.ways < 1 or self.size < 1 or self.size % (self.ways * self.line):
            raise UsageError(
                f"a cache of {self.size} bytes cannot have {self.ways} ways of {self.line}-byte lines: "
                "the size must be a multiple of ways x line"
            )

    @classmethod
    def parse(cls, text: str, line: int = LINE) -> Level:
        """Return the level that a text such as `48K/12`, size and ways, describes. Raises `UsageError`
        for other text.
        """
        size, _, ways = text.partition("/")
        found = parse_size(size)
        if found is None or not re.fullmatch(r"[1-9][0-9]{0,3}", ways):
            raise UsageError(f"cache {text!r}: write size and ways, as in 48K/12")
        return cls(found, int(ways), line)

    @property
    def sets(self) -> int:
        return self.size // (self.ways * self.line)


@dataclass(frozen=True, slots=True)
class Caches:
    """The private caches of one core."""

    l1: Level
    l2: Level
    tlb: Level = Level(96 * PAGE, 6, PAGE)

    @property
    def tables(self) -> tuple[int, int, int]:
        """The offsets, in words of the probe's state, of the tables of L1, L2 and TLB."""
        first_l2 = TABLES + self.l1.size // self.l1.line
        return TABLES, first_l2, first_l2 + self.l2.size // self.l2.line

    @property
    def words(self) -> int:
        """The number of lines in all levels together, and so of words in their tables."""
        return sum(level.size // level.line for level in (self.l1, self.l2, self.tlb))


REFERENCE = Caches(Level(48 << 10, 12), Level(2 << 20, 16))
"""Caches of a current server core, for figures that do not depend on the machine."""


class CacheProbe:
    """A probe that counts the accesses of a kernel's loads and stores, and their misses in `caches`."""

    def __init__(self, caches: Caches) -> None:
        self.caches = caches
        self.words = TABLES + caches.words

    @property
    def name(self) -> str:
        """The text `caches=`, then for each level its size in bytes and its ways, as in 49152/12."""
        levels = (self.caches.l1, self.caches.l2, self.caches.tlb)
        return "caches=" + ",".join(f"{level.size}/{level.ways}" for level in levels)

    @classmethod
    def from_name(cls, name: str) -> CacheProbe | None:
        """Return the probe of that `name`; `None` for the name of another kind of probe."""
        found = re.fullmatch(r"caches=(\d+)/(\d+),(\d+)/(\d+),(\d+)/(\d+)", name)
        if found is None:
            return None
        l1, l1_ways, l2, l2_ways, tlb, tlb_ways = map(int, found.groups())
        return cls(Caches(Level(l1, l1_ways), Level(l2, l2_ways), Level(tlb, tlb_ways, PAGE)))

    def prepare(self, module: Module) -> None:
        """Emit the functions of the levels, and `cache_touch(address, bytes, write)`, which simulates one access."""
        module.imported(STATE)
        first_l1, first_l2, first_tlb = self.caches.tables
        l1 = _emit_level(module, "cache_l1", self.caches.l1, first_l1)
        l2 = _emit_level(module, "cache_l2", self.caches.l2, first_l2)
        tlb = _emit_level(module, "cache_tlb", self.caches.tlb, first_tlb)
        self._touch = _emit_touch(module, _emit_line(module, l1, l2, tlb))

    def access(self, fn: Function, address: Value, type_: Type, mask: Value | None, *, write: bool) -> None:
        """Emit a call that simulates the access to `address` and counts its misses."""
        fn.call(self._touch, fn.address(address), accessed_bytes(fn, type_, mask), int(write))

    @contextmanager
    def around(self, fn: Function, callee: Function) -> Iterator[None]:
        """Emit code around a call of `callee` that switches to bank 1 while it runs, if it is a packing function."""
        if not packs(callee):
            yield
            return
        state = fn.symbol(f"@{STATE}", I64)
        state[PACKING] = 1
        yield
        state[PACKING] = 0


def _emit_level(module: Module, name: str, level: Level, first: int) -> Function:
    """Emit `name(word)`: look up a line and make it the most recently used one of its set.

    It returns -1 on a hit, else the evicted word (0 for an empty way). One pass both searches and shifts the other
    words back by one.
    """
    with module.function(name, [("word", I64)], I64) as fn:
        (word,) = fn.args
        number = word >> 1
        row = fn.symbol(f"@{STATE}", I64) + number % level.sets * level.ways + first
        moved = fn.var(I64, row[0])
        with fn.when((moved >> 1).equals(number)):
            row[0] = moved | word
            fn.ret(_HIT)
        with fn.range(1, level.ways) as way:
            here = row[way]
            row[way] = moved
            with fn.when((here >> 1).equals(number)):
                row[0] = here | word
                fn.ret(_HIT)
            moved.set(here)
        row[0] = word
        fn.finish(moved)
    return fn


def _emit_line(module: Module, l1: Function, l2: Function, tlb: Function) -> Function:
    """Emit `cache_line(counters, line, write)`, which takes one line through all levels."""

    def count(counters: Value, name: str) -> None:
        at = COUNTERS.index(name)
        counters[at] = counters[at] + 1

    with module.function("cache_line", [("counters", pointer(I64)), ("line", I64), ("write", I64)]) as fn:
        counters, line, write = fn.args
        clean = (line + 1) << 1
        dropped = fn.call(l1, clean | write)
        with fn.when(dropped.differs(_HIT)):
            count(counters, "l1_misses")
            evicted = fn.call(l2, clean)
            with fn.when(evicted.differs(_HIT)):
                count(counters, "l2_misses")
                with fn.when((evicted & 1).differs(0)):
                    count(counters, "l2_written_back")
            with fn.when((dropped & 1).differs(0)):
                count(counters, "l1_written_back")
                evicted = fn.call(l2, dropped)
                with fn.when(evicted.differs(_HIT) & (evicted & 1).differs(0)):
                    count(counters, "l2_written_back")
        page = (line // (PAGE // LINE) + 1) << 1
        with fn.when(fn.call(tlb, page).differs(_HIT)):
            count(counters, "tlb_misses")
        fn.finish()
    return fn


def _emit_touch(module: Module, line: Function) -> Function:
    with module.function("cache_touch", [("address", I64), ("size", I64), ("write", I64)]) as fn:
        address, size, write = fn.args
        state = fn.symbol(f"@{STATE}", I64)
        accesses = COUNTERS.index("accesses")
        with fn.when(state[STOP].differs(0) & (state[accesses] + state[BANK + accesses] >= state[STOP])):
            fn.ret()
        # Tiles that also pack are not packing functions: their packing stores are recognised by address.
        inside = (address >= state[WORKSPACE]) & (address < state[WORKSPACE_END]) & write.differs(0)
        counters = state + fn.select(inside | state[PACKING].differs(0), BANK, 0)
        counters[accesses] = counters[accesses] + 1
        counters[COUNTERS.index("bytes")] = counters[COUNTERS.index("bytes")] + size
        with fn.when(size > 0), fn.range(address // LINE, (address + size - 1) // LINE + 1) as number:
            fn.call(line, counters, number, write)
        fn.finish()
    return fn
