"""Calls from handlers, the compiled code of instructions, to the engine of asynchronous operations.

The engine (`emulator.asynchronous`) is written in Python.

Operations on mbarriers, bulk copies, tensor maps and cluster barriers are rare compared with the instructions that use
the data. So their handlers only collect the operands, and all of them call one function of the engine.
"""

from __future__ import annotations

from gemmlab.emulator.form import Form
from gemmlab.emulator.lanes import Lanes
from gemmlab.emulator.launch_layout import Launch
from gemmlab.emulator.layout import LANES
from gemmlab.ir.types import I8, I32, I64, pointer
from gemmlab.ir.values import Value

RESULTS = 2
"""Rows of 32 i64 that an operation may write."""
CALL = (pointer(I8), pointer(I8), I32, I64, pointer(I64), pointer(I64))
"""Types of the engine function's arguments: warp, instruction, mask of the lanes that execute, number of the
`Operation`, rows of operands, rows of results. The function returns a `Status`."""


class Operation:
    """Numbers of the operations of the engine. Brackets list the operands; each is a row of 32 i64, one a lane."""

    INIT = 1
    """Initialise an mbarrier [address, word]."""
    ARRIVE = 2
    """Arrive at an mbarrier [address, operand, `Arrival`]; result: its word before (or see `Arrival.TOGETHER`)."""
    CHECK = 3
    """Test whether a phase of an mbarrier has ended [address, word with the parity in bit 31, 1 if it may wait];
    result: 1 if so, else 0."""
    INVALIDATE = 4
    """End the use of an mbarrier [address]."""
    ARRIVE_LATER = 5
    """Arrive for the thread's earlier cp.async copies, which the handler has completed before [address, `Arrival`]."""
    ARRIVE_WORD = 6
    """Arrive at an mbarrier of sm_80 [address]; result: its word before."""
    BULK = 7
    """Copy or reduce bytes [`Direction`, to, from, mbarrier, bytes, mask of the cluster's blocks, reduction]."""
    TENSOR = 8
    """Copy or reduce a box of a tensor [`Direction`, tensor map, shared address, mbarrier, mask of the cluster's
    blocks, reduction, dimensions, five coordinates]."""
    COMMIT = 9
    """Close the warp's open bulk group []."""
    WAIT_READ = 10
    """Wait until at most this number of bulk groups still have to read their source [groups]."""
    VISIBLE = 11
    """Make the writes of those bulk groups visible for which `WAIT_READ` has waited []."""
    STORE = 12
    """Store registers in the shared memory of a block of the cluster, or reduce into it [address, mbarrier, bytes,
    reduction, four words]."""
    CLUSTER_ARRIVE = 13
    """Arrive at the cluster's barrier []."""
    CLUSTER_WAIT = 14
    """Wait at the cluster's barrier []."""
    FENCE = 16
    """Execute a proxy fence (FENCE.VIEW.ASYNC) []."""
    PRINT = 15
    """Print with `printf` [address of the format, address of the arguments]; result: number of arguments."""


class Arrival:
    """Flags of an arrival at an mbarrier; their sum describes the arrival."""

    ONE = 1
    """One arrival."""
    COUNT = 2
    """Several arrivals; the operand is their number."""
    EXPECT = 4
    """The operand is a number of bytes to expect."""
    COMPLETE = 8
    """The operand is a number of bytes that are complete."""
    DROP = 16
    """All later phases expect fewer arrivals: fewer by the number that this arrival counts for."""
    TOGETHER = 32
    """The result is the mask of the lanes with the same address (lower half), and the upper half of the mbarrier's word
    before their arrivals."""
    EXPECT_ONE = 64
    """Expect one more byte, which stands for all cp.async copies of a thread."""


class Direction:
    """Numbers for the memory that a bulk operation reads, and the memory that it writes; a prefetch writes none."""

    GLOBAL_TO_SHARED, SHARED_TO_GLOBAL, SHARED_TO_SHARED, PREFETCH = range(4)


REDUCTIONS = ("", "ADD", "MIN", "MAX", "INC", "DEC", "AND", "OR", "XOR")
TYPES = ("U32", "S32", "U64", "S64", "F16", "BF16", "F32", "F64")
"""Types of the values of reductions. The number of a reduction is the index of its name in `REDUCTIONS` plus 16 times
that of its type; 0 is no reduction."""


def request(x: Form, operation: int, *operands: Lanes | int) -> tuple[Value, Value]:
    """Emit a call of the engine's function; return its `Status` and the pointer to its rows of results.

    `operation` is one of `Operation`. An operand is a value for each lane, or a scalar or number for all of them.
    """
    fn = x.fn
    rows = fn.scratch(I64, LANES * max(1, len(operands)))
    results = fn.scratch(I64, LANES * RESULTS)
    for number, operand in enumerate(operands):
        value = x.constant(operand, "i64") if isinstance(operand, int) else operand.zext("i64")
        fn.store(rows + LANES * number, value.splat(LANES).value)
    engine = fn.cast(x.launch.load(Launch.ASYNC, I64), I8)
    status = fn.call_pointer(engine, I32, CALL, x.warp.base, x.insn.base, x.exec_bits, operation, rows, results)
    return status, results


def reduction_of(x: Form) -> int:
    """Return the number of the reduction that an instruction's modifiers name; 0 if they name none.

    If they name no type, it is U64 for the modifier `64`, else U32.
    """
    name = x.one_of(*REDUCTIONS[1:])
    if not name:
        return 0
    kind = x.one_of(*TYPES, default="U64" if x.has("64") else "U32")
    return REDUCTIONS.index(name) + 16 * TYPES.index(kind)
