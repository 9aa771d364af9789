"""The performance model as pure functions: cycles that can be counted by hand, and what must never happen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gemmlab
from gemmlab.analysis.model.constants import OF_H200, Constants
from gemmlab.analysis.model.demand import ISSUE, L1, demand_at, demand_of
from gemmlab.analysis.model.kernel_study import Load, Study, study
from gemmlab.analysis.model.predict import Model
from gemmlab.analysis.model.quoted_prediction import modelled
from gemmlab.analysis.model.schedule import InstructionTimes, block_cycles, instruction_times
from gemmlab.analysis.model.script import BARRIER, COMMIT, COPIES, NONE, Line, Request, Script
from gemmlab.core.counters import ASYNC_COPY, GLOBAL_LOAD, SHARED_LOAD, TEXTURE_LOAD
from gemmlab.core.errors import UsageError
from gemmlab.core.gpu import model
from gemmlab.kernels.catalog import find_kernel
from support.cuda_source import needs_compiler

H200 = model("H200")
C = replace(OF_H200, fetch=0.0, start=0.0, arrival=0.0, l2_spread=0.0, memory_spread=0.0)
"""Code that is always there, warps that start together, barriers without a queue, one latency for all places."""
L2_BYTES = 32.0


def line(role: str = "", **known: object) -> Line:
    usual = {"stall": 1, "waits": (), "write": NONE, "read": NONE, "pipe": "fma", "busy": 1.0, "left": 0, "reads": ()}
    return Line(role=role, **{**usual, **known})  # type: ignore[arg-type]


FFMA = line()
LDS = line(SHARED_LOAD, pipe="lsu", write=0)
LDG = line(GLOBAL_LOAD, pipe="lsu", write=1)
USE = line(waits=(0, 1))
BAR = line(BARRIER, pipe="adu")


def script(*code: tuple[Line, Request | None], warps: int = 4) -> Script:
    """Every warp runs all of it."""
    requests = tuple(request for _, request in code if request is not None)
    way, asked = [], 0
    for at, (_, request) in enumerate(code):
        way.append((at, asked if request is not None else -1))
        asked += request is not None
    return Script(tuple(entry for entry, _ in code), requests, (np.array(way),) * warps)


def cycles(of: Script, blocks: int = 1, latency: float = C.l2, constants: Constants = C) -> float:
    return block_cycles(of, blocks, constants, L2_BYTES, latency)


def test_each_partition_issues_one_instruction_a_cycle() -> None:
    many = script(*[(FFMA, None)] * 100)
    assert [cycles(many, blocks) for blocks in (1, 2, 4)] == [100, 200, 400]


def test_stall_counts_are_hidden_by_other_warps() -> None:
    slow = [(replace(FFMA, stall=4), None)] * 50
    assert [cycles(script(*slow), blocks) for blocks in (1, 2, 4, 8)] == [200, 201, 203, 403]


def test_a_pipe_is_busy_as_long_as_its_width_says() -> None:
    assert cycles(script(*[(replace(FFMA, pipe="alu", busy=2.0), None)] * 50)) == 99


def test_registers_of_one_bank_cost_what_the_window_does_not_hide() -> None:
    def of(*reads: int) -> float:
        return cycles(script(*[(replace(FFMA, reads=reads), None)] * 100))

    assert of(1, 1) == 100
    # Two a cycle from one bank: half the speed, but for the three cycles that the first may wait.
    assert of(2, 0) == pytest.approx(200, abs=3)


def test_shared_memory_serves_all_warps_in_turn() -> None:
    loads = script((LDS, Request(4.0, (), store=False)), (USE, None))
    # Four warps, four wavefronts each; the last result is there a latency after its service.
    assert cycles(loads) == 16 + C.shared + 1
    assert cycles(loads, 2) == 32 + C.shared + 1


def test_a_sector_comes_once_for_a_block() -> None:
    one = script((LDG, Request(1.0, (7,), store=False)), (USE, None))
    first = 1 + 1 + C.l2
    # What the first warp asked for serves the others of its block, not those of another block.
    assert cycles(one) == first
    assert cycles(one, latency=1000.0) == 1 + 1000 + 1
    far = script((LDG, Request(1.0, tuple(range(32)), store=False)), (USE, None))
    assert cycles(far) == 32 + C.l2 + 1
    assert cycles(far, 2) == 64 + C.l2 + 1


def test_the_second_sector_of_a_fetch_comes_from_l2() -> None:
    def of(second: int) -> float:
        loads = [((LDG, Request(1.0, (sector,), store=False)), (USE, None)) for sector in (0, second)]
        return cycles(script(*loads[0], *loads[1], warps=1), latency=C.memory)

    assert of(2) - of(1) == C.memory - C.l2
    assert of(2) > 2 * C.memory


def test_warps_start_one_after_the_other() -> None:
    one = script((FFMA, None))
    assert cycles(one, 2, constants=replace(C, start=8.0)) == cycles(one) + 7 * 8


def test_a_unit_takes_the_arrivals_at_a_barrier_in_turn() -> None:
    meeting = script((BAR, None), (FFMA, None))
    later = replace(C, arrival=2.0)
    assert cycles(meeting, constants=later) - cycles(meeting) == 4 * later.arrival
    assert cycles(meeting, 2, constants=later) - cycles(meeting, 2) == pytest.approx(8 * later.arrival, abs=1)


def test_latencies_differ_by_place_and_draw() -> None:
    def of(sector: int, draw: int = 0) -> float:
        loads = script((LDG, Request(1.0, (sector,), store=False)), (USE, None), warps=1)
        return block_cycles(loads, 1, replace(C, l2_spread=31.0), L2_BYTES, C.l2, draw)

    found = [of(8 * place) for place in range(200)]
    assert float(np.mean(found)) == pytest.approx(2 + C.l2, abs=4)
    assert 2 + C.l2 - 31 <= min(found) < 2 + C.l2 - 25
    assert 2 + C.l2 + 25 < max(found) <= 2 + C.l2 + 31
    assert of(0) == of(1) == of(7), "sectors beside each other are as far"
    assert of(0) != of(0, 1)


def test_texture_units_work_beside_shared_memory() -> None:
    def of(l1: float, texels: float) -> float:
        fetch = replace(LDG, role=TEXTURE_LOAD), Request(l1, (), store=False, texels=texels)
        return cycles(script(fetch, *[(LDS, Request(1.0, (), store=False))] * 16, (USE, None)))

    assert of(4.0, 32.0) > 4 * 32
    assert of(32.0, 0.0) > of(4.0, 32.0)


def test_the_last_wave_is_uneven() -> None:
    known = Model(Study("sm_90", 255, 0, 128, "", {1.0: script(*[(FFMA, None)] * 1000)}), H200, C)
    assert known.resident > 1
    blocks = [number * H200.sms for number in (known.resident, known.resident + 1, 2 * known.resident)]
    one, uneven, two = (known.predict([Load(count, 1.0)], 0).time_us for count in blocks)
    assert one < uneven < two
    assert uneven > one + (two - one) / 2


def test_no_time_is_predicted_below_that_of_the_busiest_unit() -> None:
    # The second depth takes no longer than the first, though it issues ten times as much.
    idle, full = script(*[(replace(FFMA, stall=10), None)] * 10), script(*[(FFMA, None)] * 100)
    known = Model(Study("sm_90", 32, 0, 128, "", {1.0: idle, 2.0: full}), H200, C)
    assert known.predict([Load(H200.sms, 1.0)], 0).time_us > 0
    with pytest.raises(UsageError, match=r"us by the model, and issue.* alone .* does not fit this kernel"):
        known.predict([Load(H200.sms, 20.0)], 0)


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_kernel_that_the_model_does_not_fit_is_explained_without_a_time() -> None:
    explained = gemmlab.explain("tf32_split_k", arch="sm_90a")
    (quotes,) = explained.predictions
    assert isinstance(quotes[0], str)
    assert "tensor cores alone 257 us at the peak of H200" in quotes[0]


def test_a_barrier_waits_for_the_slowest_warp() -> None:
    quick, slow = [(1, -1), (2, -1)], [(0, -1)] * 60 + [(1, -1), (2, -1)]
    of = Script((FFMA, BAR, FFMA), (), tuple(map(np.array, (slow, quick, quick, quick))))
    assert cycles(of) == 60 + C.barrier + 1


def test_copies_are_waited_for_by_groups() -> None:
    copy, commit = line(ASYNC_COPY, pipe="lsu"), line(COMMIT, pipe="lsu")
    near, far = Request(1.0, (1,), store=False), Request(1.0, (2, *range(100, 400)), store=False)

    def waiting(left: int) -> float:
        wait = line(COPIES, pipe="cbu", left=left)
        return cycles(script((copy, near), (commit, None), (copy, far), (commit, None), (wait, None), warps=1))

    assert waiting(1) == 1 + C.l2 + 1
    assert waiting(0) == pytest.approx(301 + C.l2, abs=4)
    assert waiting(2) < 10


def test_code_that_does_not_fit_is_fetched_again_every_round() -> None:
    def rounds(lines: int) -> float:
        code = tuple(FFMA for _ in range(8 * lines))
        way = np.array([(at, -1) for _ in range(4) for at in range(len(code))])
        return block_cycles(Script(code, (), (way,)), 1, OF_H200, L2_BYTES, C.l2)

    fits, does_not = OF_H200.code_lines, OF_H200.code_lines + 1
    assert rounds(does_not) / rounds(fits) > 1.5
    assert rounds(does_not) == pytest.approx(4 * does_not * OF_H200.fetch, rel=0.01)


def times(of: Script, blocks: int = 1) -> InstructionTimes:
    return instruction_times(of, blocks, C, L2_BYTES, C.l2)


def test_a_warp_is_at_an_instruction_from_the_issue_before() -> None:
    found = times(script((FFMA, None), (line(stall=4), None), (FFMA, None), (FFMA, None)))
    assert found.executions.tolist() == [4, 4, 4, 4]
    # Each of four partitions has one warp.
    assert found.cycles.tolist() == [0.0, 4.0, 16.0, 4.0]
    two = times(script((FFMA, None), (FFMA, None)), blocks=2)
    assert two.cycles.tolist() == [4 * 2.0, 8.0], "the second warp waits until the first has ended"


def test_waiting_for_data_is_told_from_the_rest() -> None:
    plain = script((line(SHARED_LOAD, pipe="lsu", write=0, stall=2), Request(1.0, (), False)), (USE, None), warps=1)
    found = times(plain)
    # The second instruction waits for the load that the first began, apart from the stall count.
    assert found.cycles[1] == 1 + C.shared
    assert found.dependency[1] == 1 + C.shared - 2
    assert found.dependency[0] == 0
    assert times(script((FFMA, None), (FFMA, None))).dependency.sum() == 0


def test_a_warp_stays_at_a_barrier_until_it_is_released() -> None:
    code = (*[FFMA] * 50, BAR, FFMA)
    slow, fast = np.array([(at, -1) for at in range(52)]), np.array([(50, -1), (51, -1)])
    found = times(Script(code, (), (slow, fast, fast, fast)))
    assert found.cycles[50] == pytest.approx(1 + C.barrier + 3 * (50 + C.barrier))
    assert found.cycles[51] == 0


@given(st.integers(1, 3), st.integers(1, 40))
def test_the_cycles_of_all_instructions_are_those_of_all_warps(blocks: int, count: int) -> None:
    of = toy(count)
    found, end = times(of, blocks), cycles(of, blocks)
    assert found.executions.sum() == blocks * of.steps
    assert 0 < found.cycles.sum() <= blocks * len(of.warps) * end + 1e-6
    assert (found.cycles >= found.dependency + found.fetch - 1e-6).all()


def toy(depth: int, rows: int = 4) -> Script:
    """A block that fetches, waits, meets and multiplies: `depth` rounds."""
    code, requests, way = [LDG, line(waits=(1,)), BAR, LDS, replace(USE, waits=(0,)), *[FFMA] * 32], [], []
    for step in range(depth):
        requests.append(Request(1.0, tuple(range(4 * step, 4 * step + 4)), store=False))
        requests.append(Request(2.0, (), store=False))
        way += [(0, 2 * step), (1, -1), (2, -1), (3, 2 * step + 1), *((at, -1) for at in range(4, len(code)))]
    return Script(tuple(code), tuple(requests), (np.array(way),) * rows)


TOY = Study("sm_90", 128, 8192, 128, "", {float(depth): toy(depth) for depth in (4, 8)})
SCHEDULED: dict[tuple[int, float, float], float] = {}
"""Of the toy on an H200: what differs below leaves schedules alone."""


def predicted(blocks: int, depth: float = 64.0, gpu: object = H200) -> float:
    return Model(TOY, gpu, scheduled=SCHEDULED).predict([Load(blocks, depth)], 1 << 20).time_us  # type: ignore[arg-type]


@settings(max_examples=200, deadline=None)
@given(blocks=st.integers(1, 5000), sms=st.integers(1, 300), more=st.integers(0, 100))
def test_more_multiprocessors_are_never_slower(blocks: int, sms: int, more: int) -> None:
    few, many = replace(H200, sms=sms), replace(H200, sms=sms + more)
    assert predicted(blocks, gpu=many) <= predicted(blocks, gpu=few) * (1 + 1e-12)


@given(blocks=st.integers(1, 5000), mhz=st.integers(500, 3000), more=st.integers(0, 1000))
def test_a_higher_clock_is_never_slower(blocks: int, mhz: int, more: int) -> None:
    slow, fast = replace(H200, boost_mhz=mhz), replace(H200, boost_mhz=mhz + more)
    assert predicted(blocks, gpu=fast) <= predicted(blocks, gpu=slow) * (1 + 1e-12)


@given(blocks=st.integers(1, 5000), more=st.integers(0, 5000), depth=st.floats(1, 1e4), deeper=st.floats(1, 8))
def test_more_work_is_never_faster(blocks: int, more: int, depth: float, deeper: float) -> None:
    assert predicted(blocks + more, depth) >= predicted(blocks, depth) * (1 - 1e-12)
    assert predicted(blocks, depth * deeper) >= predicted(blocks, depth) * (1 - 1e-12)


@given(blocks=st.integers(1, 5000), depth=st.floats(1, 1e4), gigabytes=st.floats(0, 10))
def test_terms_add_up_and_none_is_negative(blocks: int, depth: float, gigabytes: float) -> None:
    nbytes = int(gigabytes * 1e9)
    found = Model(TOY, H200, scheduled=SCHEDULED).predict([Load(blocks, depth)] * 2, nbytes)
    assert sum(found.terms.values()) == pytest.approx(found.time_us)
    assert min(found.terms.values()) >= -1e-9
    assert found.time_us >= nbytes / 4800e3
    assert found.time_us >= max(found.busy.values())


def test_demands_are_a_straight_line_in_depth() -> None:
    per_round = 5 + 32
    found = demand_at(100.0, {depth: demand_of(known) for depth, known in TOY.scripts.items()})
    assert found[ISSUE] == 100 * per_round * 4 / 4
    assert found[L1] == 100 * 4 * (1 + 2)
    assert found["FMA pipe"] == 100 * 34


def test_a_block_that_does_not_fit_is_refused() -> None:
    with pytest.raises(UsageError, match="no room"):
        Model(replace(TOY, smem_bytes=1 << 20), H200).predict([Load(1, 1.0)], 0)


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize(("gpu", "arch", "cycles"), [("A100", "sm_80", 2.0), ("RTX 3090", "sm_80", 1.0),
                                                     ("RTX A6000", "sm_86", 1.0), ("L4", "sm_80", 1.0)])  # fmt: skip
def test_the_lanes_are_those_of_the_gpu_that_is_asked_for(gpu: str, arch: str, cycles: float) -> None:
    known = modelled(find_kernel("block_tile"), arch, model(gpu), {})
    script = next(iter(known.study.scripts.values()))
    assert {line.busy for line in script.code if line.pipe == "fma"} == {cycles}
    assert min(request.l1 for request in script.requests) == (1.0 if gpu == "A100" else 2.0)


@pytest.mark.in_turns(20)
@needs_compiler
def test_copies_and_the_idle_loads_before_them_take_l1() -> None:
    of = next(iter(study(find_kernel("async_copy"), "sm_90").scripts.values()))
    rows = np.concatenate(of.warps)
    asked = [(of.code[at], of.requests[request]) for at, request in rows[rows[:, 1] >= 0]]
    copies = [request for line, request in asked if line.role == ASYNC_COPY]
    idle = [request for line, request in asked if line.pipe == "lsu" and not line.role]
    assert {request.l1 for request in copies if len(request.sectors) == 16} == {1.0}, "16 bytes a lane go past L1"
    assert {request.l1 for request in copies if len(request.sectors) < 16} <= {2.0, 3.0, 5.0}
    assert idle, "ptxas puts three before each group of copies"
    assert len(idle) % 3 == 0
    assert {(request.l1, request.sectors) for request in idle} == {(1.0, ())}
