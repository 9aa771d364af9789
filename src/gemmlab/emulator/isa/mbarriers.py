"""Mbarriers: barriers in shared memory that count arrivals and bytes (SYNCS on sm_90, ATOMS.ARRIVE on sm_80)."""

from __future__ import annotations

from gemmlab.emulator.async_calls import Arrival, Operation, request
from gemmlab.emulator.form import Form, join
from gemmlab.emulator.isa.access import addresses
from gemmlab.emulator.isa.async_copy import land
from gemmlab.emulator.isa.table import opcode
from gemmlab.emulator.isa.warpgroup import remember_fence
from gemmlab.emulator.lanes import Lanes
from gemmlab.emulator.launch_layout import Launch
from gemmlab.emulator.layout import LANES, Warp
from gemmlab.ir.types import I32, I64
from gemmlab.ir.values import Value

ARRIVALS = {
    "A1T0": Arrival.ONE, "ART0": Arrival.COUNT, "A0TR": Arrival.EXPECT, "A0TX": Arrival.COMPLETE,
    "A0T1": Arrival.EXPECT_ONE,
}  # fmt: skip
"""Modifier of `SYNCS.ARRIVE` -> kind of arrival. Without one, the operand is the number of bytes to expect, and the
thread also arrives once.
"""


@opcode("SYNCS")
def syncs(x: Form) -> None:
    """Initialise (`EXCH`), arrive at, test (`PHASECHK`) or invalidate (`CCTL.IV`) an mbarrier."""
    if x.has("EXCH"):
        x.allow("EXCH", "64")
        x.dest()
        where = addresses(x, "shared")
        status, _ = request(x, Operation.INIT, where, join(*x.words(2)))
    elif x.has("PHASECHK"):
        x.allow("PHASECHK", "TRANS64", "TRYWAIT")
        results = x.dest_predicates(1)
        where = addresses(x, "shared")
        status, rows = request(x, Operation.CHECK, where, x.source(), int(x.has("TRYWAIT")))
        ended = Lanes(x.fn.load(rows, LANES)).ne(0)
        for result in results:
            result.set(ended)
    elif x.has("ARRIVE"):
        status = _arrive(x)
    elif x.has("CCTL"):
        x.allow("CCTL", "IV")
        status, _ = request(x, Operation.INVALIDATE, addresses(x, "shared"))
    else:
        raise x.refuse()
    x.status(status)


def _arrive(x: Form) -> Value:
    x.allow("ARRIVE", "TRANS64", "RED", "OPTOUT", "TMASK", *ARRIVALS)
    d = x.dest()
    where, operand = addresses(x, "shared"), x.source()
    mode = ARRIVALS.get(x.one_of(*ARRIVALS), Arrival.ONE + Arrival.EXPECT)
    mode += Arrival.DROP * x.has("OPTOUT") + Arrival.TOGETHER * x.has("TMASK")
    status, rows = request(x, Operation.ARRIVE, where, operand, mode)
    if not x.has("RED"):
        d.set(Lanes(x.fn.load(rows, LANES)))
    return status


@opcode("ARRIVES")
def arrives(x: Form) -> None:
    """Complete the warp's cp.async copies at once, then arrive at an mbarrier: `TRANSCNT` with a byte of its
    transaction count, else with an arrival. A GPU arrives when the thread's copies have landed.
    """
    x.allow("LDGSTSBAR", "64", "TRANSCNT", "ARVCNT")
    where = addresses(x, "shared")
    land(x, -1)
    if x.has("TRANSCNT", "ARVCNT"):
        mode = Arrival.COMPLETE if x.has("TRANSCNT") else Arrival.ONE
        x.status(request(x, Operation.ARRIVE_LATER, where, mode)[0])
    else:
        x.status(request(x, Operation.ARRIVE_WORD, where)[0])


@opcode("FENCE")
def fence(x: Form) -> None:
    """Order the lane's accesses to shared memory (`S`) before the asynchronous proxy's; `G` has no effect here."""
    x.allow("VIEW", "ASYNC", "S", "G", "T")
    if x.has("S"):
        row = x.warp.at(Warp.PROXY_FENCES, I32)
        old = Lanes(x.fn.load(row, LANES))
        x.fn.store(row, x.execute.select(old + 1, old).value)
        remember_fence(x, old)
        with x.fn.when(x.launch.load(Launch.ASYNC, I64).differs(0)):
            request(x, Operation.FENCE)
    while x.left:
        x.skip()


@opcode("RPCMOV")
def rpcmov(x: Form) -> None:
    """Copy a register to a half of the 64-bit register Rpc, a return address, or back."""
    x.allow("32", suffixes=("LO", "HI"))
    first = x.peek()
    writes = first is not None and first.kind != "reg"
    halves = {"Rpc.LO": Warp.RETURN, "Rpc.HI": Warp.RETURN + 4 * LANES}
    if writes:
        half = halves.get(x.skip().text)
        value = x.source()
    else:
        d = x.dest()
        half = halves.get(x.skip().text)
    if half is None:
        raise x.refuse()
    row = x.warp.at(half, I32)
    if writes:
        x.fn.store(row, x.execute.select(value, Lanes(x.fn.load(row, LANES))).value)
    else:
        d.set(Lanes(x.fn.load(row, LANES)))
