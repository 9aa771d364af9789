"""Byte offsets and sizes of the structures that compiled handlers and Python share: warp, block, launch, instruction.

A register is a row of 32 lanes of 4 bytes. Rows that read as zero and rows that discard writes to RZ come first, so
that a 64- or 128-bit operand at RZ needs no special case.
"""

from __future__ import annotations

LANES = 32
ROW = 4 * LANES
FULL = 0xFFFFFFFF


class Warp:
    """One warp: its running group of lanes, the waiting groups, predicates, uniform and vector registers."""

    PC = 0
    """i64: index of the running group's next instruction."""
    ACTIVE = 8
    """i32: lanes of the running group."""
    EXEC = 12
    """i32: lanes of the running group whose guard holds for the current instruction."""
    EXITED = 16
    """i32: lanes that have ended, or that the block never had."""
    STATE = 20
    """i32: one of `Status`."""
    BUDGET = 24
    """i64: instructions left in this turn."""
    BLOCK = 32
    LAUNCH = 40
    LOCAL = 48
    """Host address of the warp's local memory: `local_bytes` a lane, lane by lane."""
    INDEX = 56
    """i64: index of the warp in its block."""
    GROUPS = 64
    """i64: number of waiting groups."""
    SYNCS = 72
    """i64: warp-level synchronisations so far; two accesses at the same count may race between lanes."""
    CLOCK = 80
    """i64: instructions executed so far."""
    LOCAL_BYTES = 88
    """i64: bytes of local memory a lane."""
    LOCAL_VALID = 96
    """As `Block.VALID`, for local memory."""
    PENDING = 104
    """Host address of the copies in flight (see `emulator.async_copies`); 0 if the kernel makes none."""
    GROUP = 128
    """32 waiting groups, each (pc i64, lanes i32, wait i32, argument i64, unused i64)."""
    GROUP_SIZE = 32
    PREDICATES = GROUP + LANES * GROUP_SIZE
    """9 i32 lane masks: P0..P6, PT, and one that discards writes to PT."""
    UNIFORM_PREDICATES = PREDICATES + 64
    """9 i32 like `PREDICATES`, each 0 or all ones."""
    UNIFORM = UNIFORM_PREDICATES + 64
    """4 zeros, 4 words that discard writes to URZ, then UR0..UR62."""
    CONVERGENCE = UNIFORM + 320
    """16 rows: each lane's last value of the convergence barriers B0..B15."""
    TID = CONVERGENCE + 16 * ROW
    """3 rows: threadIdx.x, .y, .z; then the lane numbers."""
    LANE = TID + 3 * ROW
    ZERO = LANE + ROW
    SWALLOW = ZERO + 4 * ROW
    REGISTERS = SWALLOW + 4 * ROW
    WIDEST = 4
    """The most consecutive registers that one operand covers."""

    @staticmethod
    def size(registers: int) -> int:
        """Bytes of a warp with that many registers, plus the rows that a wide operand at the last one extends into."""
        return Warp.REGISTERS + (registers + Warp.WIDEST) * ROW

    @staticmethod
    def register(index: int, *, write: bool = False) -> int:
        """Offset of a vector register's row; 255 is RZ."""
        return (Warp.SWALLOW if write else Warp.ZERO) if index == 255 else Warp.REGISTERS + index * ROW

    @staticmethod
    def uniform(index: int, *, write: bool = False) -> int:
        """Offset of a uniform register; 63 is URZ."""
        return Warp.UNIFORM + (16 * write if index == 63 else 32 + 4 * index)

    @staticmethod
    def predicate(index: int, *, write: bool = False, uniform: bool = False) -> int:
        """Offset of a predicate's mask; 7 is always true."""
        base = Warp.UNIFORM_PREDICATES if uniform else Warp.PREDICATES
        return base + 4 * (8 if write and index == 7 else index)


class Wait:
    """Reasons for which a group of lanes waits."""

    READY = 0
    CONVERGE = 1
    """BSYNC: wait for all lanes of a convergence barrier; argument: the barrier's number."""
    WARPSYNC = 2
    """Wait for all lanes of the mask in the argument."""
    BARRIER = 3
    """Wait at the block barrier whose number is the argument."""


class Status:
    """Outcome of a warp's turn; also the return value of a handler, where `GO` means the next instruction."""

    GO = 0
    SWITCH = 1
    """The running group waits or has ended: run another group."""
    SPENT = 2
    """The instruction budget is used up."""
    DONE = 3
    """All lanes have ended."""
    BLOCKED = 4
    """Every group waits for an action of another warp."""
    FAULT = 5
    """The launch cannot go on; the last event gives the reason."""
    PAUSED = 6
    """Blocks only: the block can go on; control returns to the caller for interrupts and time limits."""


class Block:
    """A resident block: position, warps, shared memory, barriers."""

    LAUNCH = 0
    CTAID = 8
    """3 i32: blockIdx."""
    LINEAR = 24
    """i64: number of the block in the grid, x fastest."""
    WARPS = 32
    WARP_COUNT = 40
    WARP_SIZE = 48
    SHARED = 56
    """Host address of shared address 0."""
    VALID = 64
    """Host address of one byte for each byte of shared memory: 0xFF once written."""
    SHARED_LOW = 72
    SHARED_HIGH = 80
    EPOCH = 88
    """i64: incremented by everything that another thread could notice."""
    LIVE = 96
    """i64: number of threads that have not ended."""
    THREADS = 104
    RACES = 112
    """Host address of the race shadow (see `emulator.races`); 0 when races are not checked."""
    RACE_SHIFT = 120
    """i64: log2 of the bytes of a shadow element: 2 for words, 0 for bytes."""
    WAVE = 136
    """i64: number of the wave that the block belongs to, cycling through 1 to 255."""
    FENCED = 144
    """i64: time of the block's last fence; 0 before the first."""
    SEEN = 152
    """i64: time of its last atomic or volatile access to global memory."""
    CLOCKS = 128
    """Host address of 32 rows of 32 i32: row w holds the clocks of all warps that warp w knows."""
    BARRIER = 192
    """16 barriers, each with i64 fields: threads arrived, threads required (0: all), true predicates, result (count),
    reduction, and its result; then a row of 32 i32 with the clocks of the warps that arrived."""
    BARRIER_ARRIVED, BARRIER_WAITING, BARRIER_TRUE, BARRIER_RESULT, BARRIER_MODE, BARRIER_TRUTH = range(0, 48, 8)
    BARRIER_CLOCKS = 64
    BARRIER_SIZE = 192
    SIZE = BARRIER + 16 * BARRIER_SIZE


class Launch:
    """The data that all blocks of a launch share."""

    SLOTS = 0
    """Table of allocations, indexed by the upper bits of an address: each (bytes, host address, valid, touched: i64).
    `touched` points to one byte a sector: the number of the wave that last accessed it."""
    SLOT_SIZE = 32
    SLOT_BITS = 36
    SLOT_COUNT = 2048
    CONSTANT = 8
    """8 host addresses of constant banks, then their 8 sizes."""
    CONSTANT_SIZE = 72
    BANKS, BANK_BYTES, BANK_SLACK = 8, 65536, 16
    """Number of banks, bytes of a bank, and bytes behind its end that a wide operand at its last byte may read."""
    EVENTS = 136
    EVENT_COUNT = 144
    EVENT_CAPACITY = 152
    CODE = 160
    """Address of the instruction records; one more (`lost`) catches a kernel that runs past the last instruction."""
    CODE_COUNT = 168
    """i64: number of instructions without that extra one. A computed target is checked against it before the jump."""
    GRID = 176
    """3 i32 of gridDim, then 3 i32 of blockDim."""
    TEXTURES = 200
    """Address of the table of texture objects, indexed by their number (see `Texture`)."""
    TRACE = 208
    """Host address of a `Trace`; 0 if nothing is recorded."""
    STOP = 216
    """i64: not 0 once the launch has to end; then no warp gets another turn."""
    CONSTANT_USED = 224
    """i64: bytes of `__constant__` variables in bank 3."""
    RACES = 232
    """Host address of the shadows by slot (see `emulator.global_races`); 0 if those races are not checked."""
    RACE_SHIFT = 240
    """i64: log2 of the bytes that one element of the shadows covers."""
    PUBLISHED = 248
    """Host address of the table of each block's last publication."""
    TIME = 256
    """i64, from 1 on: incremented by each fence and publication."""
    SIZE = 264


class Trace:
    """The accesses and steps of a launch to record, and the buffers for them (see `observe.tracing`)."""

    HANDLERS = 0
    """Address of the instructions' own handlers, i64 each: the recording handler that replaces one calls it."""
    BLOCKS = 8
    """Address of a table with an entry for each of the first `BLOCK_COUNT` blocks; later blocks are not recorded."""
    BLOCK_COUNT = 16
    WARPS = 24
    """i64: bit i for warp i of a chosen block."""
    FROM, UNTIL = 32, 40
    """Range of global addresses that count for the bounds of a block's writes."""
    STEPS, STEP_COUNT, STEP_CAPACITY = 48, 56, 64
    ACCESSES, ACCESS_COUNT, ACCESS_CAPACITY = 72, 80, 88
    SIZE = 96

    BLOCK_CHOSEN, BLOCK_LOW, BLOCK_HIGH, BLOCK_SIZE = 0, 8, 16, 24
    """i64: whether the block is recorded; lowest and highest address that a lane of it writes in global memory."""
    STEP_BLOCK, STEP_WARP, STEP_INSTRUCTION, STEP_ACTIVE, STEP_EXECUTE, STEP_SIZE = 0, 8, 12, 16, 20, 24
    """i64, then i32: index of the instruction, lanes of the running group, and those of them whose guard held."""
    ACCESS_STEP, ACCESS_KEY, ACCESS_SPACE, ACCESS_EXECUTE, ACCESS_ADDRESSES = 0, 8, 12, 16, 24
    """i64 index of the step; i32 width in bytes plus 256 for a write, `Space`, lanes that take
    part; 32 i64 addresses."""
    ACCESS_SIZE = ACCESS_ADDRESSES + 8 * LANES


class Texture:
    """A one-dimensional texture object over linear memory; its handle is its index in the table, never 0."""

    BASE = 0
    """i64: address of texel 0."""
    TEXELS = 8
    """i64: number of texels; 0 in an entry without a texture."""
    CHANNELS = 16
    """i64: values in a texel: 1, 2 or 4."""
    ELEMENT = 24
    """i64: one of `ELEMENTS`."""
    SIZE = 32
    COUNT = 1024
    ELEMENTS = ("f32", "f16", "u16", "s16")
    """The types of a texture's values; one of 16 bits reaches a register as a 32-bit float or integer."""


VARIABLES = 3
"""The constant bank of `__constant__` variables."""
SHARED_WINDOW = 0x10000
"""Upper half of every generic address in shared memory; larger than that of any allocation."""
LOCAL_WINDOW = 0x10001
"""Upper half of every generic address in local memory."""
DRIVER_CODE = 0xFFFF_0000_0000
"""First code address of the functions that the driver supplies."""


class Pending:
    """The asynchronous copies of a warp that have not landed: a header, then one entry for each copy of a lane."""

    COUNT = 0
    """i64: entries in use."""
    GROUP = 8
    """i64: groups closed so far; an entry belongs to the group that was open at its issue."""
    ENTRY = 64
    """Host address, address of its validity, bytes, group (i64 each), then up to 16 bytes of data."""
    ENTRY_HOST, ENTRY_VALID, ENTRY_BYTES, ENTRY_GROUP, ENTRY_DATA = 0, 8, 16, 24, 32
    ENTRY_SIZE = 64
    CAPACITY = 4096
    SIZE = ENTRY + CAPACITY * ENTRY_SIZE


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
    KEPT = MEMO
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
    """i32: 1 for a load or store that is volatile or bypasses L1 for the level-2 cache."""
    SIZE = PAGE_WAVEFRONTS + 64


class Kind:
    """Kinds of events."""

    OUT_OF_BOUNDS, MISALIGNED, UNWRITTEN, RACE_BLOCK, RACE_WARP, BARRIER, ASYNC, TRAP, TEXTURE = range(1, 10)
    WARP_SYNC, SHUFFLE, RACE_GRID = range(10, 13)
    CALL = 16
    """Control left the kernel's functions or instructions; `extra` is one of these."""
    CALLED, RETURNED, JUMPED, RAN_ON = range(4)


class Space:
    """Memory spaces, as numbered in events."""

    GLOBAL, SHARED, LOCAL, CONSTANT = range(4)
