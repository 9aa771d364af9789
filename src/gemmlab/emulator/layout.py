"""Byte offsets and sizes of the structures that compiled handlers and Python share: warp and block.

A register is a row of 32 lanes of 4 bytes. Before the registers come rows of zeros, for reads of RZ, and rows that take
writes to RZ. So 64- and 128-bit operands at RZ need no special case.
"""

from __future__ import annotations

LANES = 32
ROW = 4 * LANES
BARRIERS = 16
"""Number of barriers of a block."""
FULL = 0xFFFFFFFF


class Warp:
    """Byte offsets of a warp's structure: groups of lanes, predicates, uniform and vector registers, counters."""

    PC = 0
    """i64: index of the running group's next instruction."""
    ACTIVE = 8
    """i32: mask of the lanes of the running group; 0 if all groups wait or have ended."""
    EXITED = 16
    """i32: mask of the lanes that have ended, or that the block does not have."""
    STATE = 20
    """i32: the `Status` with which the warp's last turn ended; 0 before its first turn."""
    BLOCK = 32
    LAUNCH = 40
    LOCAL = 48
    """Host address of the warp's local memory: the bytes of lane 0, then those of lane 1, and so on. The field
    `LOCAL_BYTES` has their number for one lane."""
    INDEX = 56
    """i64: index of the warp in its block."""
    GROUPS = 64
    """i64: number of groups in the queue: those that wait, and those that are ready but do not run."""
    SYNCS = 72
    """i64: synchronisations of the warp's lanes so far, such as WARPSYNC and block barriers. Accesses of two lanes with
    the same count may race."""
    CLOCK = 80
    """i64: instructions that the warp executed in its earlier turns, plus the number of its readings of the clock."""
    LOCAL_BYTES = 88
    """i64: bytes of local memory of each lane."""
    LOCAL_VALID = 96
    """Host address of one byte for each byte of local memory: 0xFF once written."""
    PENDING = 104
    """Host address of the cp.async copies in flight (see `emulator.async_copies`); 0 if the kernel makes none."""
    FLIGHT = 112
    """Host address of the warp's `Flight` (see `emulator.wgmma_layout`), its warpgroup multiplications in flight; 0 if
    the kernel makes none."""
    MAXIMUM = 120
    """i64: registers that each thread may use (setmaxnreg)."""
    GROUP = 128
    """Room for 32 waiting groups, each (pc i64, lanes i32, `Wait` i32, argument i64, mark i64). `pc` is the index of
    the group's next instruction; only the compiled function `settle` uses the mark, which is 0 otherwise."""
    GROUP_SIZE = 32
    PREDICATES = GROUP + LANES * GROUP_SIZE
    """9 i32 lane masks: P0..P6, PT, and one that takes writes to PT."""
    UNIFORM_PREDICATES = PREDICATES + 64
    """9 i32 like `PREDICATES`, each 0 or all ones."""
    UNIFORM = UNIFORM_PREDICATES + 64
    """4 zeros, for reads of URZ, 4 words that take writes to URZ, then UR0..UR62."""
    CONVERGENCE = UNIFORM + 320
    """16 rows, one for each convergence barrier B0..B15: each lane's own mask (i32) of the lanes that it joins."""
    TID = CONVERGENCE + 16 * ROW
    """3 rows: threadIdx.x, .y and .z of each lane. The next row, `LANE`, has the lane numbers."""
    LANE = TID + 3 * ROW
    PROXY_FENCES = LANE + ROW
    """A row: the number of proxy fences (FENCE.VIEW.ASYNC) that each lane has executed."""
    RETURN = PROXY_FENCES + ROW
    """2 rows: low and high words of the register Rpc, a return address or a temporary value."""
    ZERO = RETURN + 2 * ROW
    SWALLOW = ZERO + 8 * ROW
    """8 rows that take writes to RZ; `ZERO` has as many, because float64 accumulators take up to 8 registers."""
    REGISTERS = SWALLOW + 8 * ROW
    WIDEST = 16
    """The most consecutive registers that one operand covers, except an operand of a warpgroup multiplication."""

    @staticmethod
    def size(registers: int) -> int:
        """Return the size in bytes of the structure of a warp with `registers` vector registers.

        After them it has `WIDEST` more rows, for wide operands that begin at the last register.
        """
        return Warp.REGISTERS + (registers + Warp.WIDEST) * ROW

    @staticmethod
    def register(index: int, *, write: bool = False) -> int:
        """Return the offset of a vector register's row; 255 is RZ, with separate rows for reads and writes."""
        return (Warp.SWALLOW if write else Warp.ZERO) if index == 255 else Warp.REGISTERS + index * ROW

    @staticmethod
    def uniform(index: int, *, write: bool = False) -> int:
        """Return the offset of a uniform register; 63 is URZ, which has different places for reads and for writes."""
        return Warp.UNIFORM + (16 * write if index == 63 else 32 + 4 * index)

    @staticmethod
    def predicate(index: int, *, write: bool = False, uniform: bool = False) -> int:
        """Return the offset of a predicate's mask; 7 is PT, always true: writes to it go to a separate place."""
        base = Warp.UNIFORM_PREDICATES if uniform else Warp.PREDICATES
        return base + 4 * (8 if write and index == 7 else index)


class Wait:
    """Numbers for the reasons why a group of lanes waits."""

    READY = 0
    CONVERGE = 1
    """BSYNC: wait for all lanes of a convergence barrier; argument: the barrier's number."""
    WARPSYNC = 2
    """Wait for all lanes of the mask in the argument."""
    BARRIER = 3
    """Wait at the block barrier whose number is the argument."""
    MBARRIER = 4
    """Wait for the end of a phase of the mbarrier whose shared address is the argument, then execute the instruction
    again."""
    CLUSTER = 5
    """Wait at the cluster's barrier."""


class Status:
    """Results of a handler, of a warp's turn and of a run of a block. `GO`: the next instruction follows."""

    GO = 0
    SWITCH = 1
    """The running group waits or has ended: run another group."""
    SPENT = 2
    """The warp has used up its budget of instructions, or gives up the rest of its turn. Of a block: some warp could go
    on, but the last round changed nothing that another thread could notice."""
    DONE = 3
    """All lanes of the warp, or all warps of the block, have ended."""
    BLOCKED = 4
    """Every group of the warp waits, and the warp itself cannot release one. Of a block: every warp waits or has
    ended."""
    FAULT = 5
    """The launch cannot go on. The reason is an event that compiled code noted (`emulator.events`), such as a trap; an
    error among the engine's findings (`emulator.asynchronous`); or an exception in a Python function that compiled code
    called. Such an exception is raised again when the compiled code has returned."""
    PAUSED = 6
    """Result of a block only: it can go on, but returns so that the caller can check interrupts and time limits."""


class Block:
    """Byte offsets of a resident block's structure: position, warps, shared memory, barriers."""

    LAUNCH = 0
    CTAID = 8
    """3 i32: blockIdx."""
    LINEAR = 24
    """i64: number of the block in the grid, x fastest."""
    WARPS = 32
    WARP_COUNT = 40
    WARP_SIZE = 48
    SHARED = 56
    """Host address that belongs to shared address 0. The block's shared addresses have its rank in their upper bits, so
    for a rank above 0 this is an address outside the block's array."""
    VALID = 64
    """Host address, for shared address 0, of the validity bytes, one for each byte of shared memory: 0xFF once written,
    0x7F while an asynchronous copy has not written it yet, else 0."""
    SHARED_LOW = 72
    SHARED_HIGH = 80
    EPOCH = 88
    """i64: number of changes so far that another thread could notice, such as stores and arrivals."""
    LIVE = 96
    """i64: number of threads that have not ended."""
    THREADS = 104
    RACES = 112
    """Host address of the race shadow (see `emulator.races`); 0 when races are not checked."""
    RACE_SHIFT = 120
    """i64: log2 of the bytes of shared memory that one element of the race shadow covers: 2, or 0 if the kernel has
    accesses of less than 4 bytes."""
    WAVE = 136
    """i64: number of the block's wave; after wave 255 comes wave 1 again."""
    FENCED = 144
    """i64: `Launch.TIME` at the block's last fence of wider scope than a block; 0 before the first."""
    SEEN = 152
    """i64: `Launch.TIME` at the block's last atomic or volatile access to global memory; 0 before the first, and if
    races in global memory are not checked."""
    POOL = 176
    """i64: registers that setmaxnreg released and that no warp has taken since: the sum of the warps' numbers, each in
    registers for one thread."""
    RANK = 160
    """i64: rank of the block in its cluster."""
    CLUSTER = 168
    """i64: number of blocks in the cluster. Their structures are adjacent in memory, by rank."""
    CLOCKS = 128
    """Host address of 32 rows of 32 i32: row w is the vector clock of warp w, with the clock that it knows of each warp
    of the block."""
    FOREIGN = 184
    """Host address of vector clocks over the cluster's warps: a row of this table has 32 i32 for each rank. The first
    32 rows belong to the block's warps, the next 16 to the arrivals at each barrier of the block; then come one row of
    published clocks and 32 rows of clocks at fences (`emulator.cluster_races`). What the block's warps know of each
    other is in `CLOCKS` instead. The address is 0 without clusters of several blocks, and when races are not
    checked."""
    FAR = 192
    """Host address of the shadow of accesses to this block's shared memory by the cluster's blocks: an entry for each
    element and rank (`emulator.cluster_races`)."""
    VISITS = 200
    """Host address of records of 16 bytes, 32 for each rank: the last access of each warp of the cluster's other blocks
    to this block's shared memory."""
    VISITED = 208
    """i64: 1 if another block of the cluster has accessed this block's shared memory, else 0."""
    BARRIER = 256
    """16 barriers, each with i64 fields: threads arrived; threads required (0: all); arrived threads whose predicate is
    true; number of such threads at the last reduction; kind of the barrier's reduction (0 none, 1 and, 2 or, 3 count);
    truth value of the last reduction. The last reduction is that at any barrier of the block, and only barrier 0 has
    its number and truth value. From `BARRIER_CLOCKS` on comes a row of 32 i32: for each warp of the block, the latest
    clock known to the warps that arrived."""
    BARRIER_ARRIVED, BARRIER_WAITING, BARRIER_TRUE, BARRIER_RESULT, BARRIER_MODE, BARRIER_TRUTH = range(0, 48, 8)
    BARRIER_CLOCKS = 64
    BARRIER_SIZE = 192
    SIZE = BARRIER + 16 * BARRIER_SIZE
