"""Byte offsets and sizes of the structures that compiled handlers and Python share: warp, block, launch, instruction.

All offsets and sizes are in bytes. A register is a row of 32 lanes of 4 bytes; rows that read as zero and rows that
swallow what is written to RZ come first, so that a 64- or 128-bit operand at RZ is as regular as any other.
"""

from __future__ import annotations

LANES = 32
ROW = 4 * LANES
FULL = 0xFFFFFFFF


class Warp:
    """One warp: its running group of lanes, the groups that wait, predicates, uniform and vector registers."""

    PC = 0
    """i64: index of the running group's next instruction."""
    ACTIVE = 8
    """i32: lanes of the running group."""
    EXEC = 12
    """i32: lanes of it whose guard held in the instruction being executed."""
    EXITED = 16
    """i32: lanes that have ended or never were."""
    STATE = 20
    """i32: one of `Status`."""
    BUDGET = 24
    """i64: instructions left before others get their turn."""
    BLOCK = 32
    LAUNCH = 40
    LOCAL = 48
    """Local memory of the warp: `local_bytes` a lane, lane after lane."""
    INDEX = 56
    """i64: number of the warp in its block."""
    GROUPS = 64
    """i64: how many groups wait."""
    SYNCS = 72
    """i64: warp-level synchronisations so far; two accesses within one count may race between lanes."""
    CLOCK = 80
    """i64: instructions executed so far."""
    LOCAL_BYTES = 88
    """i64: local memory a lane."""
    LOCAL_VALID = 96
    """As `Block.VALID`, for local memory."""
    PENDING = 104
    """Host address of the copies under way (see `emulator.async_copy`); 0 where a kernel makes none."""
    GROUP = 128
    """32 waiting groups, each (pc i64, lanes i32, wait i32, argument i64, unused i64)."""
    GROUP_SIZE = 32
    PREDICATES = GROUP + LANES * GROUP_SIZE
    """9 i32 lane masks: P0..P6, PT, and one that swallows writes to PT."""
    UNIFORM_PREDICATES = PREDICATES + 64
    """9 i32, each 0 or all ones."""
    UNIFORM = UNIFORM_PREDICATES + 64
    """4 zeros, 4 that swallow writes to URZ, then UR0..UR62."""
    CONVERGENCE = UNIFORM + 320
    """16 rows: what each lane last put into B0..B15."""
    TID = CONVERGENCE + 16 * ROW
    """3 rows: threadIdx.x, .y, .z; then the lane numbers."""
    LANE = TID + 3 * ROW
    ZERO = LANE + ROW
    SWALLOW = ZERO + 4 * ROW
    REGISTERS = SWALLOW + 4 * ROW
    WIDEST = 4
    """Registers that an operand may name by its first one."""

    @staticmethod
    def size(registers: int) -> int:
        """Bytes of a warp whose kernel uses that many registers, and of what a wide operand at the last one takes."""
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
    """BSYNC: all lanes of its convergence barrier; argument: the barrier's number."""
    WARPSYNC = 2
    """All lanes of the mask in the argument."""
    BARRIER = 3
    """The block barrier in the argument."""


class Status:
    """Outcome of a warp's turn; also the return value of a handler, where `GO` means the next instruction."""

    GO = 0
    SWITCH = 1
    """The running group has to wait or has ended: another one's turn."""
    SPENT = 2
    """The budget is used up."""
    DONE = 3
    """All lanes have ended."""
    BLOCKED = 4
    """Every group waits for something that other warps must do."""
    FAULT = 5
    """The launch cannot go on; the last event says why."""
    PAUSED = 6
    """Only of a block: it goes on, but the caller is heard in between (interrupts, time limits)."""


class Block:
    """A resident block: position, warps, shared memory, barriers."""

    LAUNCH = 0
    CTAID = 8
    """3 i32."""
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
    """i64: grows with everything that another thread could notice."""
    LIVE = 96
    """i64: threads that have not ended."""
    THREADS = 104
    RACES = 112
    """Host address of the race shadow (see `emulator.races`); 0 when races are not checked."""
    RACE_SHIFT = 120
    """i64: 2 where the shadow has an element a word, 0 where it has one a byte."""
    WAVE = 136
    """i64: number of the wave of blocks that this one is of, 1 to 255 in turn."""
    FENCED = 144
    """i64: time of the block's last fence; 0 before the first."""
    SEEN = 152
    """i64: time of its last atomic or volatile access to global memory."""
    CLOCKS = 128
    """Host address of 32 rows of 32 i32: what each warp knows of every warp's clock."""
    BARRIER = 192
    """16 barriers, each: threads arrived, threads demanded (0: all), true predicates, result (count), reduction, and
    what it came to, all i64, and a row of 32 i32: the clocks of those who have arrived."""
    BARRIER_ARRIVED, BARRIER_WAITING, BARRIER_TRUE, BARRIER_RESULT, BARRIER_MODE, BARRIER_TRUTH = range(0, 48, 8)
    BARRIER_CLOCKS = 64
    BARRIER_SIZE = 192
    SIZE = BARRIER + 16 * BARRIER_SIZE


class Launch:
    """The data that all blocks of a launch share."""

    SLOTS = 0
    """Table of allocations by the upper bits of an address, each (bytes, host address, valid, touched: i64);
    `touched` is one byte a sector, the number of the wave that last accessed it."""
    SLOT_SIZE = 32
    SLOT_BITS = 36
    SLOT_COUNT = 2048
    CONSTANT = 8
    """8 host addresses of constant banks, then their 8 sizes."""
    CONSTANT_SIZE = 72
    BANKS, BANK_BYTES, BANK_SLACK = 8, 65536, 16
    """Each bank has bytes behind its end, so that a wide operand at its last byte lies in memory too."""
    EVENTS = 136
    EVENT_COUNT = 144
    EVENT_CAPACITY = 152
    CODE = 160
    """The instruction records, and one more where whatever runs past the last of them arrives (`lost`)."""
    CODE_COUNT = 168
    """i64: how many there are without that one. Nothing else is ever executed: a computed target is compared first."""
    GRID = 176
    """3 i32, then 3 i32 of blockDim."""
    TEXTURES = 200
    """Table of texture objects by their number (see `Texture`)."""
    TRACE = 208
    """Host address of a `Trace`; 0 where nothing is recorded."""
    STOP = 216
    """i64: not 0 once the launch is to end: no warp gets another turn."""
    CONSTANT_USED = 224
    """i64: bytes that `__constant__` variables take, in bank 3."""
    RACES = 232
    """Host address of the shadows by slot (see `emulator.global_races`); 0 where those races are not looked for."""
    RACE_SHIFT = 240
    """i64: the shadows have an element for 2^shift bytes."""
    PUBLISHED = 248
    """Host address of what each block last published."""
    TIME = 256
    """i64, from 1 on: grows with each fence and publication."""
    SIZE = 264


class Trace:
    """The accesses and steps of a launch to record, and the buffers for them (see `emulator.tracing`)."""

    HANDLERS = 0
    """The handler of each instruction, i64: the recording one that stands in its place calls it."""
    BLOCKS = 8
    """One entry a block, `BLOCK_COUNT` of them; of blocks with higher numbers nothing is recorded."""
    BLOCK_COUNT = 16
    WARPS = 24
    """i64: bit i for warp i of a chosen block."""
    FROM, UNTIL = 32, 40
    """Global addresses that count for the bounds of what a block writes."""
    STEPS, STEP_COUNT, STEP_CAPACITY = 48, 56, 64
    ACCESSES, ACCESS_COUNT, ACCESS_CAPACITY = 72, 80, 88
    SIZE = 96

    BLOCK_CHOSEN, BLOCK_LOW, BLOCK_HIGH, BLOCK_SIZE = 0, 8, 16, 24
    """i64: whether it is recorded; lowest and highest address of a lane that writes to global memory."""
    STEP_BLOCK, STEP_WARP, STEP_INSTRUCTION, STEP_ACTIVE, STEP_EXECUTE, STEP_SIZE = 0, 8, 12, 16, 20, 24
    """i64, then i32: instruction by index, lanes of the running group, those of them whose guard held."""
    ACCESS_STEP, ACCESS_KEY, ACCESS_SPACE, ACCESS_EXECUTE, ACCESS_ADDRESSES = 0, 8, 12, 16, 24
    """i64 index of its step; i32 width in bytes plus 256 for a write, `Space`, lanes that take part; 32 i64."""
    ACCESS_SIZE = ACCESS_ADDRESSES + 8 * LANES


class Texture:
    """A one-dimensional texture object over linear memory; its handle is its place in the table, never 0."""

    BASE = 0
    """i64: address of texel 0."""
    TEXELS = 8
    """i64: how many there are; 0 in a place of the table that holds no texture."""
    CHANNELS = 16
    """i64: values in a texel: 1, 2 or 4."""
    ELEMENT = 24
    """i64: one of `ELEMENTS`."""
    SIZE = 32
    COUNT = 1024
    ELEMENTS = ("f32", "f16", "u16", "s16")
    """The types of a texture's values; one of 16 bits reaches a register as a 32-bit float or integer."""


VARIABLES = 3
"""The constant bank that has `__constant__` variables."""
SHARED_WINDOW = 0x10000
"""Upper half of the generic address of anything in shared memory: beyond every allocation."""
LOCAL_WINDOW = 0x10001
"""The same for local memory."""
DRIVER_CODE = 0xFFFF_0000_0000
"""Addresses of code from here on are functions that a driver supplies."""


class Pending:
    """Asynchronous copies of a warp that have not landed: a header, then one entry a lane's copy."""

    COUNT = 0
    """i64: entries in use."""
    GROUP = 8
    """i64: groups closed so far; an entry belongs to the group that was open when it was made."""
    ENTRY = 64
    """Host address, address of its validity, bytes, group (i64 each), then up to 16 bytes of data."""
    ENTRY_HOST, ENTRY_VALID, ENTRY_BYTES, ENTRY_GROUP, ENTRY_DATA = 0, 8, 16, 24, 32
    ENTRY_SIZE = 64
    CAPACITY = 4096
    SIZE = ENTRY + CAPACITY * ENTRY_SIZE


class Event:
    """A hazard as handlers note it: eight i64, in this order."""

    KIND, INSTRUCTION, OTHER, BLOCK, THREAD, ADDRESS, EXTRA, EXTRA2 = range(0, 64, 8)
    SIZE = 64


class Insn:
    """A decoded instruction: its handler, guard, operands, and what is counted of it."""

    HANDLER = 0
    GUARD = 8
    """i64: offset of the guard's mask in the warp."""
    GUARD_XOR = 16
    """i32: all ones for a negated guard."""
    TARGET = 24
    """i64: index of the instruction a branch goes to."""
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
    """i64: hazards noted here so far; after `EVENT_LIMIT` only this count goes on."""
    EVENT_LIMIT = 64
    MEMO = 112
    """The analysis of the last access pattern of a memory instruction (see `emulator.memory_counts`)."""
    KEPT = MEMO
    """i64, of a branch: threads that its guard lets pass and a second predicate keeps."""
    PATTERN = 176
    """32 i32: address of each lane less the first active lane's."""
    OPERANDS = 320
    OPERAND_SIZE = 32
    """Four i64 an operand."""
    OPERAND_COUNT = 10
    PAGE_WAVEFRONTS = OPERANDS + OPERAND_COUNT * OPERAND_SIZE
    """i64, as the next two: what Nsight Compute's source page has of an asynchronous copy (`emulator.copy_counts`)."""
    PAGE_IDEAL = PAGE_WAVEFRONTS + 8
    PAGE_SECTORS = PAGE_WAVEFRONTS + 16
    ENTRY = PAGE_WAVEFRONTS + 24
    """i64: 1 where a function begins that a call by address may go to."""
    STRONG = PAGE_WAVEFRONTS + 32
    """i32: 1 for a load or store that is volatile, or goes to the level-2 cache."""
    SIZE = PAGE_WAVEFRONTS + 64


class Kind:
    """Kinds of events."""

    OUT_OF_BOUNDS, MISALIGNED, UNWRITTEN, RACE_BLOCK, RACE_WARP, BARRIER, ASYNC, TRAP, TEXTURE = range(1, 10)
    WARP_SYNC, SHUFFLE, RACE_GRID = range(10, 13)
    CALL = 16
    """Control left the kernel's functions or instructions; `extra` is one of these."""
    CALLED, RETURNED, JUMPED, RAN_ON = range(4)


class Space:
    """Memory spaces, as events name them."""

    GLOBAL, SHARED, LOCAL, CONSTANT = range(4)
