"""cp.async: copies from global to shared memory, which are completed at the wait for their group."""

from __future__ import annotations

from gemmlab.emulator.async_calls import Operation, request
from gemmlab.emulator.async_copies import BYPASS, COPY, FILL, LAND
from gemmlab.emulator.copy_counts import PAST_L1
from gemmlab.emulator.form import Form
from gemmlab.emulator.isa.access import addresses, width_of
from gemmlab.emulator.isa.each_lane import row
from gemmlab.emulator.isa.table import opcode
from gemmlab.emulator.lanes import Lanes
from gemmlab.emulator.launch_layout import Launch, Pending
from gemmlab.emulator.layout import Warp
from gemmlab.emulator.raw import Raw
from gemmlab.ir.types import I8, I32, I64, VOID
from gemmlab.ir.values import Value


@opcode("LDGSTS")
def ldgsts(x: Form) -> None:
    """Start a copy. Operands: shared address, global address, and optionally a predicate; lanes where it is false copy
    zeros.
    """
    width = width_of(x)
    to = addresses(x, "shared")
    source = addresses(x, "global")
    reads = x.predicate().mask_bits() if x.left else Lanes(x.fn.constant(-1, I32))
    x.service(
        "copy",
        VOID,
        COPY,
        x.exec_bits,
        row(x, to),
        row(x, source),
        reads.value,
        width + (FILL if x.has("ZFILL") else 0) + (BYPASS if x.has(PAST_L1) else 0),
    )


@opcode("LDGDEPBAR")
def ldgdepbar(x: Form) -> None:
    """Close a group: the copies made since the last group was closed."""
    with x.fn.when(x.warp.load(Warp.PENDING, I64).differs(0)):
        Raw(x.fn, x.fn.cast(x.warp.load(Warp.PENDING, I64), I8)).add(Pending.GROUP, 1)


@opcode("DEPBAR")
def depbar(x: Form) -> None:
    """Wait until at most the given number (default 0) of closed groups is in flight, of cp.async and of bulk stores.

    A wait for a list of scoreboards does nothing.
    """
    if x.skip().kind != "scoreboard":
        # A list of scoreboards, {3,2}, is for results of other instructions, which the emulator completes at once.
        return
    left = x.source().lane(0) if x.left else Lanes(x.fn.constant(0, I32))
    while x.left:
        x.skip()
    land(x, left.zext("i64").value)
    with x.fn.when(x.launch.load(Launch.ASYNC, I64).differs(0)):
        request(x, Operation.WAIT_READ, left)


def land(x: Form, left: Value | int) -> None:
    """Emit the completion of the copies of the warp's closed groups, except the last `left` (-1: of all copies)."""
    with x.fn.when(x.warp.load(Warp.PENDING, I64).differs(0)):
        x.service("land", VOID, LAND, left)


@opcode("CCTL")
def cctl(x: Form) -> None:
    """Control a cache. `IVALL` (invalidate) ends a full wait for bulk stores: it makes their writes visible."""
    if x.has("IVALL"):
        with x.fn.when(x.launch.load(Launch.ASYNC, I64).differs(0)):
            request(x, Operation.VISIBLE)
    while x.left:
        x.skip()
