"""Byte offsets and sizes of a decoded instruction and of the events that its handler records."""

from __future__ import annotations

from enum import IntEnum


class Event:
    """Byte offsets of a recorded hazard: eight i64."""

    KIND, INSTRUCTION, OTHER, BLOCK, THREAD, ADDRESS, EXTRA, EXTRA2 = range(0, 64, 8)
    SIZE = 64


class Insn:
    """Byte offsets of a decoded instruction's record: its handler, guard, operands and counters."""

    HANDLER = 0
    GUARD = 8
    """i64: offset in the warp's structure of the mask of the guard predicate."""
    GUARD_XOR = 16
    """i32: all ones for a negated guard, else 0."""
    TARGET = 24
    """i64: index of the instruction that a branch goes to."""
    INDEX = 32
    CONFLICTS = 40
    """i64: wavefronts that the hardware adds for bank conflicts (see `emulator.memo`)."""
    EXECUTED = 48
    ACTIVE = 56
    PREDICATED_ON = 64
    REQUESTS = 72
    SECTORS = 80
    WAVEFRONTS = 88
    IDEAL = 96
    FRESH = 104
    """i64: sectors that the wave of blocks had not accessed before."""
    EVENTS = 304
    """i64: hazards at this instruction so far; only the first `EVENT_LIMIT` are recorded as events."""
    EVENT_LIMIT = 64
    MEMO = 112
    """The analysis of the access pattern that a memory instruction had last (`emulator.memo.Memo`)."""
    NOT_TAKEN = MEMO
    """i64, branches only: threads for which the guard is true and the second predicate false, so they do not branch."""
    PATTERN = 176
    """32 i32 of the access that was analysed last: each lane's address minus that of the first lane that executed it; 0
    in lanes that did not."""
    OPERANDS = 320
    OPERAND_SIZE = 32
    """Bytes of an operand's record: four i64."""
    OPERAND_COUNT = 10
    PAGE_WAVEFRONTS = OPERANDS + OPERAND_COUNT * OPERAND_SIZE
    """First of three i64 (wavefronts, ideal wavefronts, sectors): a cp.async copy's counters as on Nsight Compute's
    source page (`emulator.copy_counts`)."""
    PAGE_IDEAL = PAGE_WAVEFRONTS + 8
    PAGE_SECTORS = PAGE_WAVEFRONTS + 16
    ENTRY = PAGE_WAVEFRONTS + 24
    """i64: 1 at the first instruction of a function that may be called by address, else 0."""
    STRONG = PAGE_WAVEFRONTS + 32
    """i32: 1 for a load or store that is volatile or accesses the level-2 cache directly; for an arrival at the barrier
    of a cluster, its `Order`."""
    RETRIED = PAGE_WAVEFRONTS + 40
    """i64: executions of a wait for an mbarrier that are repeated because the phase had not ended; `EXECUTED` does not
    count them."""
    SIZE = PAGE_WAVEFRONTS + 64


class Order(IntEnum):
    """Memory orders of an arrival at a cluster's barrier: which earlier writes of its thread it makes known."""

    RELEASE = 0
    RELAXED = 1
    INITIALISATIONS = 2
    """Relaxed, but after a fence.mbarrier_init: initialisations of mbarriers become known all the same."""


class Kind:
    """Kinds of events."""

    OUT_OF_BOUNDS, MISALIGNED, UNWRITTEN, RACE_BLOCK, RACE_WARP, BARRIER, ASYNC, TRAP, TEXTURE = range(1, 10)
    WARP_SYNC, SHUFFLE, RACE_GRID = range(10, 13)
    WARPGROUP = 32
    """Not all lanes of a warp execute a warpgroup instruction (`extra` is 0; `address`: mask of those that do not), or
    another error that `extra` names (`HAS_ENDED`, `TOO_FEW` or `UNFINISHED` in `wgmma_flight`)."""
    REGISTERS = 33
    """setmaxnreg has a number of registers (`address`) that is not allowed or that the pool can never supply; `extra`:
    the reason (`isa.register_pool.GROWS` and others)."""
    PROXY = 35
    """A warpgroup multiplication reads a thread's write with no proxy fence between, neither of that thread nor of the
    multiplying warp; `extra` as for `OVERWRITTEN`."""
    OVERWRITTEN = 34
    """A write to shared memory that a warpgroup multiplication may still read as its operand; from bit 32 on, `extra`
    has the writing thread."""
    SWIZZLE = 36
    """A warpgroup multiplication reads an operand by a swizzle pattern that starts at another address than that of the
    last writes; `extra` as for `OVERWRITTEN`."""
    ENDED = 13
    """An access to the shared memory of a block of the cluster that has ended."""
    RACE_CLUSTER = 14
    """A race between blocks of a cluster in the shared memory of one of them."""
    CALL = 16
    """A jump to an address without an instruction or function; `extra`: `CALLED`, `RETURNED`, `JUMPED` or `RAN_ON`."""
    CALLED, RETURNED, JUMPED, RAN_ON = range(4)


class Space:
    """Numbers of the memory spaces in events."""

    GLOBAL, SHARED, LOCAL, CONSTANT = range(4)
