"""The operations on mbarriers that instructions request, except waits and those of `old_mbarriers`.

`initialise`, `arrive` and `invalidate` each execute one of these and return the handler's `Status`.
"""

from __future__ import annotations

from gemmlab.emulator.async_calls import Arrival
from gemmlab.emulator.asynchronous.async_request import Request
from gemmlab.emulator.asynchronous.block_state import BlockState
from gemmlab.emulator.asynchronous.far_accesses import absence, visit
from gemmlab.emulator.asynchronous.finding import CLUSTER, MBARRIER, MISALIGNED
from gemmlab.emulator.asynchronous.host_words import mask_of
from gemmlab.emulator.asynchronous.mbarrier import Mbarrier
from gemmlab.emulator.asynchronous.mbarrier_phase import Expectation
from gemmlab.emulator.asynchronous.mbarrier_word import MOST, ONE_ARRIVAL, initial
from gemmlab.emulator.hazard_order import Rank
from gemmlab.emulator.launch_layout import RANK_BITS
from gemmlab.emulator.layout import LANES, Status

EVERY_BIT = (1 << 64) - 1
UNFENCED = "fence.mbarrier_init, which the relaxed arrival at the cluster's barrier needs before it,"


def initialise(request: Request) -> int:
    """Make a new mbarrier from the word that compiled code computes from its count.

    The launch ends if the address or the count is not valid.
    """
    address, word = request.operand(0, request.first) & 0xFFFFFFFF, request.operand(1, request.first)
    block = request.target(address, "an mbarrier")
    _require_place(request, block, address)
    fields = initial(word)
    if fields is None:
        request.fail(MBARRIER, f"an mbarrier is initialised with a count outside 1 to {MOST}", address)
        return Status.FAULT
    clock = int(block.resident.clocks[request.warp, request.warp])
    made = Mbarrier(block, address, fields, request.site, request.warp, clock, block.cluster_time)
    made.arriving = block.no_clocks()
    made.released = block.no_clocks()
    block.mbarriers[address] = made
    made.store()
    block.changed()
    return Status.GO


def _require_place(request: Request, block: BlockState, address: int) -> None:
    if address % 8:
        request.fail(MISALIGNED, "an mbarrier at an address that is no multiple of 8", address)
    if not block.holds(address, 8):
        request.fail("out of bounds", "an mbarrier outside the block's shared memory", address)


def find(request: Request, address: int, lane: int | None = None) -> Mbarrier:
    """Return the mbarrier at a shared address of the cluster. The launch ends if there is none.

    It reports an mbarrier whose word ordinary stores have changed, and writes the word again. If races are checked, it
    reports a use that nothing orders after the initialisation.
    """
    block = request.target(address, "an mbarrier")
    found = block.mbarriers.get(address)
    if found is None:
        _require_place(request, block, address)
        request.fail(MBARRIER, "no mbarrier was initialised here before", address)
        raise AssertionError
    if not found.intact:
        request.report(MBARRIER, "the mbarrier's word was overwritten by ordinary stores", address, other=found.site)
        found.store()
    if block is request.block:
        ordered = block.knows_initialisation(request.warp, found.warp, found.clock)
        unfenced = found.clock <= block.passed[block.rank, found.warp] and request.warp not in block.arrived
        missing = UNFENCED if unfenced else "a barrier of the block"
    else:
        ordered, missing = block.cluster_time > found.cluster_time, "the cluster's barrier"
    if not ordered and block.checks:
        message = f"the {found.name} is used before {missing} makes its initialisation known to this thread"
        request.report(MBARRIER, message, address, other=found.site, lane=lane)
    return found


def arrive(request: Request) -> int:
    """Execute `Operation.ARRIVE` for every lane that executes, the lowest first."""
    mode, lanes = request.operand(2), _lanes_that_arrive(request)
    if not lanes:
        return Status.GO
    if mode & Arrival.TOGETHER:
        _states_together(request)
    column = request.column(0)
    if mode == Arrival.ONE and len({column[lane] for lane in lanes}) == 1:
        _arrive_in_turn(request, column[lanes[0]] & 0xFFFFFFFF, lanes)
        return Status.GO
    for lane in lanes:
        address = request.operand(0, lane) & 0xFFFFFFFF
        mbarrier = find(request, address, lane)
        if not mode & Arrival.TOGETHER:
            request.answer(lane, mbarrier.word.encoded())
        arrive_at(request, mbarrier, mode, request.operand(1, lane) & 0xFFFFFFFF, lane)
    return Status.GO


def _lanes_that_arrive(request: Request) -> list[int]:
    """Return the lanes that execute, except those whose mbarrier is in a block that has ended; these are reported."""
    cluster = request.block.cluster
    if not any(block.ended for block in cluster):
        return request.lanes
    found = []
    for lane in request.lanes:
        address = request.operand(0, lane) & 0xFFFFFFFF
        rank = address >> RANK_BITS
        if rank < len(cluster) and cluster[rank].ended:
            mentions = cluster[rank].its_end()
            request.report(CLUSTER, absence(rank), address, lane=lane, order=Rank.END, mentions=mentions)
        else:
            found.append(lane)
    return found


def _arrive_in_turn(request: Request, address: int, lanes: list[int]) -> None:
    """Arrive once with each lane, all at one mbarrier; a lane's result is the word after the lower lanes' arrivals."""
    mbarrier = find(request, address, lanes[0])
    word = mbarrier.word.encoded()
    for number, lane in enumerate(lanes):
        request.answer(lane, word + number * ONE_ARRIVAL & EVERY_BIT)
    arrive_at(request, mbarrier, Arrival.COUNT, len(lanes), lanes[0], mask_of(lanes))


def _states_together(request: Request) -> None:
    """Write each lane's result for `Arrival.TOGETHER`.

    The lower half is the mask of the lanes with the same address, the upper half that of the mbarrier's word before
    their arrivals.
    """
    groups: dict[int, int] = {}
    for lane in request.lanes:
        address = request.operand(0, lane) & 0xFFFFFFFF
        groups[address] = groups.get(address, 0) | 1 << lane
    for lane in request.lanes:
        address = request.operand(0, lane) & 0xFFFFFFFF
        high = find(request, address, lane).word.encoded() >> 32
        request.answer(lane, high << 32 | groups[address])


def arrive_at(request: Request, mbarrier: Mbarrier, mode: int, operand: int, lane: int, lanes: int = 0) -> None:
    """Make the arrival of the thread in `lane`, or one of all threads in the mask `lanes`; end the phase if complete.

    `mode` is a sum of `Arrival` flags, which say what `operand` is. Bytes to expect are added first, then arrivals are
    counted, and then complete bytes are subtracted.
    """
    word = mbarrier.word
    if mode & (Arrival.EXPECT | Arrival.EXPECT_ONE):
        expected = operand if mode & Arrival.EXPECT else 1
        word.transactions += expected
        before = mbarrier.now.expected[-1].site if mbarrier.now.expected else mbarrier.last
        thread = request.warp * LANES + lane
        mbarrier.now.expected.append(Expectation(request.site, expected, request.block.linear, thread))
        if word.transactions > MOST:
            message = f"{word.transactions} bytes are expected in one phase; an mbarrier counts to {MOST}"
            request.report(MBARRIER, message, mbarrier.address, other=before, lane=lane)
            word.transactions = MOST
    count = operand if mode & Arrival.COUNT else 1 if mode & Arrival.ONE else 0
    if count > word.pending:
        have = "is" if word.pending == 1 else "are"
        waits = f"; the phase still lacks {mbarrier.lacks}" if word.transactions > 0 else ""
        message = f"too many arrivals: {count} where {word.pending} of {word.expected} {have} missing{waits}"
        request.report(MBARRIER, message, mbarrier.address, other=mbarrier.last, lane=lane)
        count = word.pending
    if mode & Arrival.DROP:
        word.expected = max(0, word.expected - count)
    if mbarrier.block is not request.block:
        visit(request, mbarrier.block, lane)
    if count:
        request.block.release(request.warp, mbarrier.arriving)
        mbarrier.last = request.site
        mbarrier.sites[request.site] = None
        mbarrier.now.note(request.block.rank, request.warp, lanes or 1 << lane)
    if count or mode & Arrival.EXPECT:
        request.note("arrive", mbarrier, mbarrier.completed)
    word.pending -= count
    if mode & Arrival.COMPLETE:
        word.transactions -= operand
    mbarrier.settle()


def invalidate(request: Request) -> int:
    """Execute `Operation.INVALIDATE`: end the use of the mbarrier of every lane that executes."""
    for lane in request.lanes:
        address = request.operand(0, lane) & 0xFFFFFFFF
        find(request, address, lane).block.mbarriers.pop(address, None)
    return Status.GO
