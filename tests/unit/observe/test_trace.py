"""Traces: what was recorded adds up to what was counted, addresses lead to elements, and room is limited."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from gemmlab.core.counters import ASYNC_COPY, GLOBAL_LOAD, SHARED_LOAD, SiteCounters
from gemmlab.core.errors import UsageError
from gemmlab.core.trace import Access, Step, TraceRequest
from gemmlab.kernels.by_name import kernel_named
from gemmlab.kernels.catalog import find_kernel
from gemmlab.observe.access_patterns import pattern_of, served_together
from gemmlab.observe.contributions import contributions
from gemmlab.observe.matrix_trace import Element, KernelTrace, Matrix, bank, tile_of_block
from gemmlab.observe.tracing import trace_kernel, trace_order, trace_whole
from gemmlab.ops.gemm_problem import GemmProblem
from gemmlab.ops.op import Operand
from gemmlab.ops.reduce_problem import ReduceProblem
from support.cuda_source import needs_compiler


@cache
def one_block(kernel: str, m: int, n: int, k: int) -> KernelTrace:
    return trace_kernel(find_kernel(kernel), problem=GemmProblem(m, n, k))


def access(addresses: list[int], width: int = 4, *, store: bool = False, on: int = 0xFFFFFFFF) -> Access:
    step = Step(0, 0, SiteCounters(0, "LDS", kind=SHARED_LOAD), on, on)
    return Access(0, step, "shared", width, store, on, tuple(addresses))


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize(
    ("kernel", "m", "n", "k"),
    [("naive", 32, 32, 5), ("vector_load", 128, 128, 16), ("async_copy", 128, 256, 16), ("maxas_64", 64, 64, 16)],
)
def test_a_block_that_was_recorded_adds_up_to_what_was_counted(kernel: str, m: int, n: int, k: int) -> None:
    traced = one_block(kernel, m, n, k)
    trace = traced.trace
    assert (trace.grid, trace.lost) == ((1, 1, 1), 0)
    on = Counter[int]()
    for step in trace.steps:
        on[step.site.address] += step.on.bit_count()
        assert step.on & ~step.active == 0
    requests, sectors, wavefronts, ideal = (Counter[int]() for _ in range(4))
    for one in trace.accesses:
        found, at = pattern_of(one), one.site.address
        if one.space == "shared":
            wavefronts[at] += found.wavefronts
            ideal[at] += found.ideal
        else:
            sectors[at] += found.sectors
        requests[at] += one.space == "shared" or one.kind != ASYNC_COPY
        assert one.on & ~one.step.on == 0
    for site in trace.observation.counters.sites:
        at = site.address
        assert on[at] == site.predicated_on_threads
        if site.kind.endswith(("load", "store", "copy")) and not site.kind.startswith("constant"):
            counted = (site.requests, site.sectors, site.wavefronts, site.wavefronts_ideal)
            assert (requests[at], sectors[at], wavefronts[at], ideal[at]) == counted, site.text


@needs_compiler
def test_addresses_lead_to_elements() -> None:
    traced = one_block("naive", 32, 32, 5)
    loads = list(traced.trace.accesses_of(GLOBAL_LOAD, warp=3))
    first = {operand: next(a for a in loads if traced.operand_of(a) == operand) for operand in "ab"}
    assert {traced.elements(first["a"], lane) for lane in range(32)} == {(Element("a", 3, 0),)}
    assert [traced.elements(first["b"], lane) for lane in (0, 1, 31)] == [
        (Element("b", 0, 0),), (Element("b", 0, 1),), (Element("b", 0, 31),),
    ]  # fmt: skip
    moved = traced.moves("c", (a for a in traced.trace.accesses if a.store))
    assert sorted(zip(moved.row, moved.col, strict=True)) == [(row, col) for row in range(32) for col in range(32)]
    assert (moved.thread == moved.row * 32 + moved.col).all()
    assert traced.trace.thread(3, 5) == (5, 3, 0)


@pytest.mark.in_turns(20)
@needs_compiler
def test_what_is_fetched_through_textures_has_addresses_too() -> None:
    traced = one_block("maxas_64", 64, 64, 16)
    fetched = list(traced.trace.accesses_of("texture load"))
    assert {traced.operand_of(one) for one in fetched} == {"a", "b"}
    assert {one.width for one in fetched} == {16}


@pytest.mark.in_turns(20)
@needs_compiler
def test_an_asynchronous_copy_is_a_read_and_a_write() -> None:
    traced = one_block("async_copy", 128, 256, 16)
    by_order: dict[int, list[Access]] = {}
    for one in traced.trace.accesses_of(ASYNC_COPY):
        by_order.setdefault(one.order, []).append(one)
    assert by_order
    for read, write in by_order.values():
        assert (read.space, read.store, write.space, write.store) == ("global", False, "shared", True)
        assert read.width == write.width
        assert traced.word(write.addresses[write.lanes[0]]) >= 0


@needs_compiler
def test_only_what_was_asked_for_is_kept_and_as_much_as_there_is_room_for() -> None:
    kernel, problem = find_kernel("naive"), GemmProblem(64, 32, 5)
    whole = trace_kernel(kernel, problem=problem, request=TraceRequest(blocks=(1,), warps=(3,))).trace
    assert {(step.block, step.warp) for step in whole.steps} == {(1, 3)}
    assert {one.warp for one in whole.accesses} == {3}
    assert len(whole.steps_of(3, block=1)) == len(whole.steps)
    assert len(whole.steps_of(3)) == 0
    few = trace_kernel(kernel, problem=problem, request=TraceRequest((1,), (3,), most_steps=20, most_accesses=4)).trace
    assert [step.site for step in few.steps] == [step.site for step in whole.steps[:20]]
    early = [one for one in whole.accesses if one.order < 20][:4]
    assert [(one.order, one.addresses) for one in few.accesses] == [(one.order, one.addresses) for one in early]
    within = sum(one.order < 20 for one in whole.accesses)
    assert few.lost == len(whole.steps) - 20 + within - len(early)


@pytest.mark.in_turns(20)
@needs_compiler
def test_recording_changes_nothing() -> None:
    kernel, problem = find_kernel("vector_load"), GemmProblem(128, 128, 16)
    nothing = trace_kernel(kernel, problem=problem, request=TraceRequest(blocks=(), most_steps=0, most_accesses=0))
    assert (len(nothing.trace.steps), nothing.trace.accesses, nothing.trace.lost) == (0, (), 0)
    counted = nothing.trace.observation.counters
    assert counted.sites == one_block("vector_load", 128, 128, 16).trace.observation.counters.sites
    assert not nothing.trace.observation.hazards


@needs_compiler
def test_the_bounds_of_what_blocks_write() -> None:
    traced = trace_kernel(find_kernel("naive"), problem=GemmProblem(64, 96, 5))
    corners = [(traced.element(w.low), traced.element(w.high)) for w in traced.trace.writes]
    # Blocks walk down the two tiles of a column first.
    assert corners == [
        (Element("c", row, col), Element("c", row + 31, col + 31)) for col in (0, 32, 64) for row in (0, 32)
    ]
    assert tile_of_block(traced) == (32, 32)


@pytest.mark.in_turns(20)
@needs_compiler
def test_the_order_of_blocks_is_traced_over_about_two_waves() -> None:
    like = trace_kernel(find_kernel("naive"))
    order = trace_order(like)
    assert order is not None
    assert like.resident == 132 * 2
    assert (order.problem.m, order.problem.n) == (23 * 32, 23 * 32)
    assert len(order.trace.writes) == 23 * 23
    assert trace_order(trace_kernel(find_kernel("reduce_sequential"))) is None


def test_kernels_for_a_cpu_have_no_trace() -> None:
    with pytest.raises(UsageError, match="only kernels for a GPU are traced"):
        trace_kernel(find_kernel("packed"))


def test_what_lies_between_rows_is_no_element() -> None:
    matrix = Matrix(Operand("a", 3, 5, 8, "in"), 1024)
    assert matrix.end == 1024 + 4 * (2 * 8 + 5)
    assert matrix.element(1024 + 4 * 12) == Element("a", 1, 4)
    assert [matrix.element(at) for at in (1023, 1024 + 4 * 5, matrix.end)] == [None, None, None]
    empty = Matrix(Operand("a", 0, 5, 8, "in"), 1024)
    assert empty.element(1024) is None


def test_who_is_served_together() -> None:
    quarters = tuple(tuple(range(first, first + 8)) for first in range(0, 32, 8))
    halves = (tuple(range(16)), tuple(range(16, 32)))
    row = [16 * lane for lane in range(32)]
    assert served_together(access(row, 16)) == quarters
    # Lanes i and i ^ 1 read the same: two quarters make one; of stores they never do.
    pairs = [16 * (lane // 2) for lane in range(32)]
    assert served_together(access(pairs, 16)) == halves
    assert served_together(access(pairs, 16, store=True)) == quarters
    assert served_together(access([8 * lane for lane in range(32)], 8)) == halves
    assert served_together(access([4 * lane for lane in range(32)])) == (tuple(range(32)),)
    assert served_together(access(row, 16, on=0b1100)) == ((2, 3),)


def test_what_a_pattern_comes_to() -> None:
    two_way = access([8 * lane for lane in range(32)])
    assert (pattern_of(two_way).wavefronts, pattern_of(two_way).ideal) == (2, 1)
    assert pattern_of(two_way, range(16)).wavefronts == 1
    assert pattern_of(two_way, ()).wavefronts == 0
    assert pattern_of(access([1024 + 128 * lane for lane in range(32)])).sectors == 32
    assert [bank(address) for address in (0, 4, 124, 128)] == [0, 1, 31, 0]


@pytest.mark.in_turns(20)
@needs_compiler
def test_lanes_that_contribute_halve_from_step_to_step() -> None:
    traced = trace_kernel(find_kernel("reduce_shuffle"), problem=ReduceProblem(256))
    used = contributions(traced)
    steps = traced.trace.steps
    shuffles = [order for order, step in enumerate(steps) if step.warp == 5 and step.site.base_opcode == "SHFL"]
    assert [used[order] for order in shuffles] == [0xFFFF, 0xFF, 0xF, 0x3, 0x1]
    loads = [order for order, step in enumerate(steps) if step.site.kind == SHARED_LOAD]
    assert [used[order] for order in loads] == [0xFF]
    assert np.unique(steps.columns["block"]).tolist() == [0]


GREEDY = """
__global__ void greedy(int M, int N, int K, const float *A, const float *B, float *C) {
    for (int at = threadIdx.x; at < M * N; at += 32) {
        float sum = 0;
        for (int k = 0; k < K; ++k) sum += A[at / N * K + k] * B[k * N + at % N];
        C[at] = sum;
    }
}
"""


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_block_that_does_too_much_is_traced_on_less_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "greedy.cu"
    path.write_text(GREEDY)
    kernel = kernel_named(str(path), {"grid": "1", "threads": "32"})
    traced = trace_whole(kernel)
    assert (traced.problem.label, traced.trace.lost) == ("64x64x16", 0)
    with pytest.raises(UsageError, match=r"greedy: at 256x256x16 its first block does .* too many .* smaller size"):
        trace_whole(kernel, problem=GemmProblem(256, 256, 16))
