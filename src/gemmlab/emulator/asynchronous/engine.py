"""The engine of asynchronous operations of one launch: it executes requests of handlers (`emulator.async_calls`)."""

from __future__ import annotations

import ctypes
import os
import random
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from gemmlab.core.errors import UsageError
from gemmlab.emulator.async_calls import Operation
from gemmlab.emulator.asynchronous import (
    bulk_copies,
    bulk_groups,
    mbarrier_calls,
    mbarrier_waits,
    old_mbarriers,
    proxies,
    tensor_copies,
)
from gemmlab.emulator.asynchronous.absent_arrivals import ArrivalCode
from gemmlab.emulator.asynchronous.async_request import Request, UnusableError
from gemmlab.emulator.asynchronous.block_state import BlockState
from gemmlab.emulator.asynchronous.byte_counts import unexpected
from gemmlab.emulator.asynchronous.cluster_barrier import ClusterBarrier
from gemmlab.emulator.asynchronous.far_accesses import report_visits
from gemmlab.emulator.asynchronous.finding import CLUSTER, COPY, Finding, Findings
from gemmlab.emulator.asynchronous.hangs import report_waits
from gemmlab.emulator.asynchronous.host_words import wide
from gemmlab.emulator.asynchronous.late_reads import explain
from gemmlab.emulator.asynchronous.printer import Printer
from gemmlab.emulator.geometry import Bytes
from gemmlab.emulator.launch_layout import Launch
from gemmlab.emulator.layout import Status, Warp
from gemmlab.emulator.memory_map import Reach
from gemmlab.emulator.resident import Resident
from gemmlab.emulator.trace_buffers import Recorder

LANDING = "GEMMLAB_EMULATOR_LANDING"
"""Environment variable: a seed. If it is set, warpgroup multiplications and copies into shared memory, except cp.async,
are completed (they land) at random moments, not the latest possible ones, and the blocks of a cluster get their turns
in a random order."""
_CALLBACK = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint32, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64
)


def landing_seed() -> int | None:
    """Return the seed from `LANDING`, `None` if it is not set or empty. Raises `UsageError` if it is no number."""
    setting = os.environ.get(LANDING, "")
    if setting and not setting.isdecimal():
        raise UsageError(f"{LANDING}={setting}: a number is needed")
    return int(setting) if setting else None


class Engine:
    """The asynchronous operations of all blocks of one launch."""

    def __init__(self, reach: Reach, launch: Bytes, events: npt.NDArray[np.int64]) -> None:
        self.findings = Findings()
        self._printer = Printer(reach)
        self.error: BaseException | None = None
        """The exception in a call, or `None`. It cannot pass through compiled code: the machine raises it again."""
        self.recorder: Recorder | None = None
        """The buffers of a recorded launch, which get the events at mbarriers; `None` without a recording."""
        self._launch, self._events, self._explained = launch, events, 0
        self._blocks: dict[int, BlockState] = {}
        self._barriers: dict[int, ClusterBarrier] = {}
        seed = landing_seed()
        self._random = None if seed is None else random.Random(seed)  # noqa: S311 - an order of events, no secret
        self._callback = _CALLBACK(self._call)
        self._operations: dict[int, Callable[[Request], int]] = {
            Operation.INIT: mbarrier_calls.initialise,
            Operation.ARRIVE: mbarrier_calls.arrive,
            Operation.CHECK: mbarrier_waits.check,
            Operation.INVALIDATE: mbarrier_calls.invalidate,
            Operation.ARRIVE_LATER: old_mbarriers.arrive_later,
            Operation.ARRIVE_WORD: old_mbarriers.arrive_word,
            Operation.BULK: lambda request: bulk_copies.bulk(request, reach),
            Operation.TENSOR: lambda request: tensor_copies.tensor_copy(request, reach),
            Operation.COMMIT: bulk_groups.commit,
            Operation.WAIT_READ: bulk_groups.wait_read,
            Operation.VISIBLE: bulk_groups.show,
            Operation.PRINT: self._printer.print,
            Operation.FENCE: proxies.fence,
            Operation.STORE: bulk_copies.store,
            Operation.CLUSTER_ARRIVE: lambda request: self._barriers[request.block.address].arrive(request),
            Operation.CLUSTER_WAIT: lambda request: self._barriers[request.block.address].wait(request),
        }

    @property
    def address(self) -> int:
        """Address of the function that handlers call."""
        return ctypes.cast(self._callback, ctypes.c_void_p).value or 0

    @property
    def printed(self) -> str:
        """The text that the kernel printed."""
        return self._printer.text

    def order(self, ranks: Sequence[int]) -> Sequence[int]:
        """Return the order in which the blocks of a cluster get their next turns: by rank, or random with a seed."""
        return ranks if self._random is None else self._random.sample(ranks, len(ranks))

    def begin(self, residents: list[Resident]) -> None:
        """Reset the state of the blocks of a cluster that begins."""
        states = [self._state(resident) for resident in residents]
        barrier = ClusterBarrier(states)
        for rank, state in enumerate(states):
            state.begin(states, rank)
            self._barriers[state.address] = barrier

    def _state(self, resident: Resident) -> BlockState:
        address = int(resident.block.ctypes.data)
        return self._blocks.setdefault(address, BlockState(resident))

    def end(self, resident: Resident) -> None:
        """Finish the bulk operations of a block that has ended, and report those for which nothing waited.

        It also reports accesses of other blocks to its memory that nothing orders before its end.
        """
        state = self._state(resident)
        self._explain()
        state.ended = True
        report_visits(state, self.findings)
        for copy in [each for other in state.cluster for each in other.incoming]:
            if copy.source is not None and copy.source.block is state and copy.block is not state:
                message = "the block ends before a copy from its shared memory to another block's has read it"
                self.findings.add(
                    Finding(
                        CLUSTER, message, state.linear, copy.thread, copy.site, -1, copy.source.address, state=True,
                        mentions=state.its_end(),
                    )
                )  # fmt: skip
        for copy in list(state.incoming):
            message = "the block ends before a bulk copy into its shared memory has landed: nothing waited for it"
            self.findings.add(
                Finding(
                    COPY, message + unexpected(copy), state.linear, copy.thread, copy.site, -1, copy.address, state=True
                )
            )  # fmt: skip
            copy.land()
        for groups in state.groups.values():
            for store in list(groups.reading):
                message = "the block ends before a bulk store has read its shared memory: nothing waited for its group"
                store.request.report(COPY, message, store.address)
                store.read(store.request)
                groups.done.append(store)
            groups.show()

    def _explain(self) -> None:
        """Add findings for new events that are reads before a bulk copy was complete (`late_reads.explain`).

        This is done before each operation, because operations change the state that explains the events.
        """
        count = int(self._launch[Launch.EVENT_COUNT : Launch.EVENT_COUNT + 8].view(np.int64)[0])
        if count == self._explained:
            return
        new = self._events[self._explained : count]
        self._explained = count
        for state in self._blocks.values():
            explain(state, new, self.findings)

    def excuse(self, residents: list[Resident]) -> bool:
        """Let warps go on in a cluster whose warps all wait; return whether any can.

        If the cluster's barrier is complete, its phase ends; else all waits for mbarriers time out.
        """
        states = [self._state(resident) for resident in residents]
        if self._barriers[states[0].address].settle():
            return True
        excused = [mbarrier_waits.excuse(state) for state in states if not state.ended]
        return any(excused)

    def land_rest(self, residents: list[Resident]) -> bool:
        """Complete copies between blocks if a phase for which warps wait needs them; return whether any was completed.

        The machine calls this if a round of turns changed nothing.
        """
        count = 0
        for state in map(self._state, residents):
            for copy in list(state.incoming):
                if copy.source is not None and copy.mbarrier.waiting:
                    copy.mbarrier.settle()
                    count += copy not in state.incoming
        return count > 0

    def report_hang(self, residents: list[Resident], code: ArrivalCode) -> None:
        """Report the mbarriers and cluster barriers that warps wait for in a deadlock."""
        self._explain()
        states = [self._state(resident) for resident in residents]
        waits = report_waits(states, self.findings, code)
        for state in states:
            if state.rank == 0:
                self._barriers[state.address].report(self.findings, waits)

    def _call(self, warp: int, instruction: int, execute: int, operation: int, arguments: int, results: int) -> int:
        try:
            self._explain()
            block = self._blocks[wide(warp + Warp.BLOCK)]
            request = Request(block, warp, instruction, execute, arguments, results, self.findings, self.recorder)
            if self._random is not None:
                self._land_some(block)
            return self._operations[operation](request)
        except UnusableError:
            return Status.FAULT
        except BaseException as error:  # noqa: BLE001 - it cannot pass through compiled code; the machine raises it again
            self.error = error
            return Status.FAULT

    def _land_some(self, block: BlockState) -> None:
        assert self._random is not None  # noqa: S101 - the caller asked
        for member in block.cluster:
            for copy in list(member.incoming):
                if self._random.random() < CHANCE:
                    copy.land()
                    copy.mbarrier.settle()


CHANCE = 0.25
"""Probability with which each copy into a cluster's shared memory is completed before an operation of the cluster,
with `LANDING` set."""
