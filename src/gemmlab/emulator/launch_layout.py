"""Byte offsets and sizes of the structures that all blocks of a launch share, and constants of address spaces."""

from __future__ import annotations

from gemmlab.emulator.layout import LANES

VARIABLES = 3
"""The constant bank of `__constant__` variables."""
SHARED_WINDOW = 0x10000
"""Upper half of every generic address in shared memory; larger than the upper half of any global address."""
LOCAL_WINDOW = 0x10001
"""Upper half of every generic address in local memory."""
PARAMETERS = 0x198
"""Offset in constant bank 0 of the generic address of the first parameter, on sm_90."""
RANK_BITS = 24
"""A block's shared addresses have its rank in the cluster above this bit."""
DRIVER_CODE = 0xFFFF_0000_0000
"""First code address of the functions that the driver supplies."""
VPRINTF = DRIVER_CODE + 16
"""Code address of `vprintf`, which the emulator supplies."""


class Launch:
    """Byte offsets of the structure that all blocks of a launch share."""

    SLOTS = 0
    """Table of allocations, indexed by the upper bits of an address: four i64 (bytes, host address, host address of the
    validity bytes, `touched`). `touched` points to one byte a sector: the number of the wave that last accessed it."""
    SLOT_SIZE = 32
    SLOT_BITS = 36
    SLOT_COUNT = 2048
    CONSTANT = 8
    """8 host addresses of constant banks, then their 8 sizes."""
    CONSTANT_SIZE = 72
    BANKS, BANK_BYTES, BANK_SLACK = 8, 65536, 16
    """Number of banks, bytes of a bank, and bytes after its end that a wide operand at its last bytes may read."""
    EVENTS = 136
    EVENT_COUNT = 144
    EVENT_CAPACITY = 152
    CODE = 160
    """Address of the instruction records; an extra one at the end reports a kernel that runs past its last
    instruction."""
    CODE_COUNT = 168
    """i64: number of instructions without the extra one. Computed targets of jumps are checked against it."""
    GRID = 176
    """3 i32 of gridDim, then 3 i32 of blockDim."""
    TEXTURES = 200
    """Address of the table of texture objects, indexed by their number (see `Texture`)."""
    TRACE = 208
    """Host address of a `Trace`; 0 if nothing is recorded."""
    STOP = 216
    """i64: not 0 if the launch has to end; then no warp gets another turn."""
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
    ASYNC = 264
    """Address of the function that executes asynchronous operations (see `emulator.async_calls`); 0 if the kernel has
    none."""
    OLD_TENSOR_CORE = 272
    """i64: 1 for an architecture before sm_90, whose tensor cores add up fewer products at a time."""
    SIZE = 280


class Trace:
    """The accesses and steps of a launch to record, and the buffers for them (see `observe.tracing`)."""

    HANDLERS = 0
    """Address of the instructions' own handlers, an i64 each; the recording handler replaces them and calls them."""
    BLOCKS = 8
    """Address of a table with an entry for each of the first `BLOCK_COUNT` blocks; later blocks are not recorded."""
    BLOCK_COUNT = 16
    WARPS = 24
    """i64: bit i is set if warp i of a chosen block is recorded."""
    FROM, UNTIL = 32, 40
    """Range of global addresses; only writes there count for the bounds of a block's writes."""
    STEPS, STEP_COUNT, STEP_CAPACITY = 48, 56, 64
    ACCESSES, ACCESS_COUNT, ACCESS_CAPACITY = 72, 80, 88
    SIZE = 96

    BLOCK_CHOSEN, BLOCK_LOW, BLOCK_HIGH, BLOCK_SIZE = 0, 8, 16, 24
    """i64: whether the block is recorded; lowest and highest address that a lane of it writes in global memory."""
    STEP_BLOCK, STEP_WARP, STEP_INSTRUCTION, STEP_ACTIVE, STEP_EXECUTE, STEP_SIZE = 0, 8, 12, 16, 20, 24
    """Offsets of a step: i64 block; i32 warp, index of the instruction, mask of the running group's lanes, and mask of
    those whose guard is true."""
    ACCESS_STEP, ACCESS_KEY, ACCESS_SPACE, ACCESS_EXECUTE, ACCESS_ADDRESSES = 0, 8, 12, 16, 24
    """Offsets of an access: i64 index of the step; i32 width in bytes plus 256 for a write, `Space`, mask of the lanes
    that access memory; 32 i64 addresses."""
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


class Pending:
    """A warp's cp.async copies that are not complete: a header, then one entry for each copy of a lane."""

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
