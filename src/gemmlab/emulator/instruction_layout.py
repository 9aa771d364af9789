"""Byte offsets and sizes of a decoded instruction and of the events that its handler records."""

from __future__ import annotations


class Event:
    """A hazard as a handler records it: eight i64, in this order."""

    KIND, INSTRUCTION, OTHER, BLOCK, THREAD, ADDRESS, EXTRA, EXTRA2 = range(0, 64, 8)
    SIZE = 64


class Insn:
    """A decoded instruction: its handler, guard, operands and counters."""

    HANDLER = 0
    GUARD = 8
    """i64: offset of the guard's mask in the warp."""
    GUARD_XOR = 16
    """i32: all ones for a negated guard."""
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
    """i64: sectors that no access of the same wave of blocks had touched before."""
    EVENTS = 304
    """i64: hazards at this instruction so far; beyond `EVENT_LIMIT` they are only counted."""
    EVENT_LIMIT = 64
    MEMO = 112
    """The analysis of the last access pattern of a memory instruction (see `emulator.memory_counts`)."""
    NOT_TAKEN = MEMO
    """i64, branches only: threads that pass the guard but not the second predicate, so do not branch."""
    PATTERN = 176
    """32 i32: address of each lane minus that of the first active lane."""
    OPERANDS = 320
    OPERAND_SIZE = 32
    """Bytes of an operand's record: four i64."""
    OPERAND_COUNT = 10
    PAGE_WAVEFRONTS = OPERANDS + OPERAND_COUNT * OPERAND_SIZE
    """i64, like the next two: Nsight Compute's source-page counters of an asynchronous copy
    (`emulator.copy_counts`)."""
    PAGE_IDEAL = PAGE_WAVEFRONTS + 8
    PAGE_SECTORS = PAGE_WAVEFRONTS + 16
    ENTRY = PAGE_WAVEFRONTS + 24
    """i64: 1 at the first instruction of a function that may be called by address."""
    STRONG = PAGE_WAVEFRONTS + 32
    """i32: 1 for a load or store that is volatile or bypasses L1 for the level-2 cache, and for a relaxed arrival at
    the barrier of a cluster."""
    RETRIED = PAGE_WAVEFRONTS + 40
    """i64: executions that only repeated a wait for an mbarrier; they are not among `EXECUTED`."""
    SIZE = PAGE_WAVEFRONTS + 64


class Kind:
    """Kinds of events."""

    OUT_OF_BOUNDS, MISALIGNED, UNWRITTEN, RACE_BLOCK, RACE_WARP, BARRIER, ASYNC, TRAP, TEXTURE = range(1, 10)
    WARP_SYNC, SHUFFLE, RACE_GRID = range(10, 13)
    WARPGROUP = 32
    """Not all lanes of a warp execute a warpgroup instruction; `address` is the mask of those that do not."""
    REGISTERS = 33
    """setmaxnreg asks for registers (`address`) that it cannot get; `extra` says why."""
    PROXY = 35
    """A multiplication reads what a thread wrote that has executed no proxy fence since; `extra` as below."""
    OVERWRITTEN = 34
    """A write to an operand of a multiplication that may still read it; `extra` has the writer in bits 32 and up."""
    ENDED = 13
    """An access to the shared memory of a block of the cluster that has ended."""
    RACE_CLUSTER = 14
    """A race between blocks of a cluster in the shared memory of one of them."""
    CALL = 16
    """Control left the kernel's functions or instructions; `extra` is `CALLED`, `RETURNED`, `JUMPED` or `RAN_ON`."""
    CALLED, RETURNED, JUMPED, RAN_ON = range(4)


class Space:
    """Memory spaces, as numbered in events."""

    GLOBAL, SHARED, LOCAL, CONSTANT = range(4)
