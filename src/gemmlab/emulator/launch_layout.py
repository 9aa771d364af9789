"""Byte offsets and sizes of the structures that all blocks of a launch share, and constants of address spaces."""

from __future__ import annotations

from gemmlab.emulator.layout import LANES

VARIABLES = 3
"""The constant bank of `__constant__` variables."""
SHARED_WINDOW = 0x10000
"""Upper 32 bits of every generic address in shared memory; larger than those of any global address."""
LOCAL_WINDOW = 0x10001
"""Upper 32 bits of every generic address in local memory."""
PARAMETERS = 0x198
"""Offset in constant bank 0 of a word of 64 bits: the generic address of the kernel's first parameter, on sm_90."""
RANK_BITS = 24
"""Number of the lowest bit of the block's rank in its cluster, in a shared address; the bits below it are a position
in that block's shared memory."""
DRIVER_CODE = 0xFFFF_0000_0000
"""First code address of the functions that the driver supplies."""
VPRINTF = DRIVER_CODE + 16
"""Invented code address of `vprintf`, the driver's function that the emulator supplies itself."""


class Launch:
    """Byte offsets of the structure that all blocks of a launch share."""

    SLOTS = 0
    """Host address of the table of allocations. Its index is the address >> `SLOT_BITS`; an entry has four i64 (bytes,
    host address, host address of the validity bytes, `touched`), all 0 in a free slot. `touched` is the host address
    of one byte for each 32-byte sector: the number of the wave of blocks that last accessed it."""
    SLOT_SIZE = 32
    SLOT_BITS = 36
    SLOT_COUNT = 2048
    CONSTANT = 8
    """8 host addresses (i64) of constant banks, then the sizes of these banks in bytes (8 i64)."""
    CONSTANT_SIZE = 72
    BANKS, BANK_BYTES, BANK_SLACK = 8, 65536, 16
    """Number of constant banks, bytes of a bank, and bytes after a bank's end that a wide operand there may read."""
    EVENTS = 136
    EVENT_COUNT = 144
    EVENT_CAPACITY = 152
    CODE = 160
    """Host address of the instruction records; an extra one at the end reports a kernel that runs past its last
    instruction."""
    CODE_COUNT = 168
    """i64: number of instructions without the extra one. Computed targets of jumps are checked against it."""
    GRID = 176
    """3 i32 of gridDim, then 3 i32 of blockDim."""
    TEXTURES = 200
    """Host address of the table of texture objects, indexed by their handle (see `Texture`)."""
    TRACE = 208
    """Host address of the launch's `Trace`; 0 if nothing is recorded."""
    STOP = 216
    """i64: not 0 if the launch has to end; then no warp gets another turn."""
    CONSTANT_USED = 224
    """i64: bytes of `__constant__` variables in bank 3."""
    RACES = 232
    """Host address of the table of race shadows by slot (`global_races.Shadows`); 0 if races in global memory are not
    checked."""
    RACE_SHIFT = 240
    """i64: log2 of the bytes of global memory that one element of the race shadows covers."""
    PUBLISHED = 248
    """Host address of the table of the blocks' last publications (`global_races.Shadows`)."""
    TIME = 256
    """i64: a counter that starts at 1 and grows by 1 with each fence and each publication of a block."""
    ASYNC = 264
    """Address of the function that executes asynchronous operations (see `emulator.async_calls`); 0 in a launch without
    the engine (see `Geometry.asynchronous`)."""
    OLD_TENSOR_CORE = 272
    """i64: 1 for an architecture before sm_90, whose tensor cores add up fewer products at a time, else 0."""
    SIZE = 280


class Trace:
    """Byte offsets of the structure that says which steps and accesses of a launch are recorded, and in which buffers
    (see `observe.tracing`).
    """

    HANDLERS = 0
    """Host address of an array of i64: the address of each instruction's own handler. If a block is chosen, the
    instruction records have the recording handler instead, which calls these."""
    BLOCKS = 8
    """Host address of a table with an entry for each of the launch's first blocks; later ones are not recorded."""
    BLOCK_COUNT = 16
    """i64: number of entries in the table of `BLOCKS`."""
    WARPS = 24
    """i64: mask in which bit i is set if warp i of each chosen block is recorded."""
    FROM, UNTIL = 32, 40
    """i64: first address, and address after the last, of the global memory in which writes count for `BLOCK_LOW` and
    `BLOCK_HIGH`."""
    STEPS, STEP_COUNT, STEP_CAPACITY = 48, 56, 64
    ACCESSES, ACCESS_COUNT, ACCESS_CAPACITY = 72, 80, 88
    SIZE = 96

    BLOCK_CHOSEN, BLOCK_LOW, BLOCK_HIGH, BLOCK_SIZE = 0, 8, 16, 24
    """Offsets in a block's entry, an i64 each: 1 if its steps are recorded, else 0; lowest and highest address, of
    those from `FROM` to before `UNTIL`, at which a write of one of its lanes begins. `BLOCK_SIZE` is the size of an
    entry in bytes."""
    STEP_BLOCK, STEP_WARP, STEP_INSTRUCTION, STEP_ACTIVE, STEP_EXECUTE, STEP_SIZE = 0, 8, 12, 16, 20, 24
    """Offsets in a recorded step: i64 block; i32 warp, index of the instruction, mask of the running group's lanes, and
    mask of those lanes whose guard is true. `STEP_SIZE` is the size of a step in bytes."""
    ACCESS_STEP, ACCESS_KEY, ACCESS_SPACE, ACCESS_EXECUTE, ACCESS_ADDRESSES = 0, 8, 12, 16, 24
    """Offsets in a recorded access: i64 index of the step; i32 width in bytes plus flags (256 for a write; see
    `address_space.EACH_LANE`), i32 `Space`, i32 mask of the lanes that access memory; 32 i64 addresses."""
    ACCESS_SIZE = ACCESS_ADDRESSES + 8 * LANES


class Texture:
    """Byte offsets of the table entry of a one-dimensional texture object over linear memory.

    The texture's handle is its index in the table, never 0.
    """

    BASE = 0
    """i64: address of texel 0."""
    TEXELS = 8
    """i64: number of texels; 0 in an entry without a texture."""
    CHANNELS = 16
    """i64: values in a texel: 1, 2 or 4."""
    ELEMENT = 24
    """i64: type of the values, as an index in `ELEMENTS`."""
    SIZE = 32
    COUNT = 1024
    ELEMENTS = ("f32", "f16", "u16", "s16")
    """The types of a texture's values; one of 16 bits reaches a register as a 32-bit float or integer."""


class Pending:
    """Byte offsets in the list of a warp's cp.async copies in flight: a header, then an entry for each lane's copy."""

    COUNT = 0
    """i64: entries in use."""
    GROUP = 8
    """i64: groups closed so far; an entry belongs to the group that was open at its issue."""
    ENTRY = 64
    """Offset of the first entry. An entry has the destination's host address, the host address of its validity bytes,
    the number of bytes, the group (i64 each), then up to 16 bytes of data."""
    ENTRY_HOST, ENTRY_VALID, ENTRY_BYTES, ENTRY_GROUP, ENTRY_DATA = 0, 8, 16, 24, 32
    ENTRY_SIZE = 64
    CAPACITY = 4096
    SIZE = ENTRY + CAPACITY * ENTRY_SIZE
