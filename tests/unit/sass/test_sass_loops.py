"""Basic blocks, dominators and loops: by hand, by definition on random graphs, and on compiled kernels."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemmlab.sass.blocks import Block, FlowGraph, flow_graph
from gemmlab.sass.loops import dominates, dominators, find_loops, main_loop
from gemmlab.sass.metrics import flops, opcode_mix
from support.sass_corpus import everything, functions, written


def shape(*lines: str) -> list[tuple[int, int, tuple[int, ...]]]:
    return [(block.start, block.stop, block.successors) for block in flow_graph(written(*lines)).blocks]


def test_a_straight_line_is_one_block() -> None:
    assert shape("NOP", "BSSY B0, `(.L_a)", "WARPSYNC 0xffffffff", "BSYNC B0", "a: BAR.SYNC 0x0", "EXIT") == [
        (0, 6, ())
    ]


def test_a_guarded_branch_goes_two_ways() -> None:
    assert shape("@P0 BRA `(.L_a)", "NOP", "a: EXIT") == [(0, 1, (1, 2)), (1, 2, (2,)), (2, 3, ())]


@pytest.mark.parametrize(
    "branch",
    ["BRA UP0, `(.L_a)", "BRA.U UP0, `(.L_a)", "BRA.DIV UR4, `(.L_a)", "BRA.CONV ~URZ, `(.L_a)", "@!PT BRA `(.L_a)"],
)
def test_conditions_other_than_guards(branch: str) -> None:
    assert shape(branch, "NOP", "a: EXIT")[0] == (0, 1, (1, 2))


def test_a_branch_without_condition_goes_one_way() -> None:
    assert shape("BRA `(.L_a)", "NOP", "a: EXIT")[0] == (0, 1, (2,))


def test_a_guarded_exit_goes_on() -> None:
    assert shape("@P0 EXIT", "EXIT") == [(0, 1, (1,)), (1, 2, ())]


def test_a_call_goes_on_behind_itself_and_its_callee_is_an_entry() -> None:
    graph = flow_graph(written("CALL.REL.NOINC `($f$g)", "EXIT", "$f$g: NOP", "RET.REL.NODEC R20 `(f)"))
    assert [(block.start, block.successors) for block in graph.blocks] == [(0, (1,)), (1, ()), (2, ())]
    assert graph.entries == (0, 2)


def test_an_indexed_branch_goes_where_it_may() -> None:
    told = shape('BRX R4 -0x10 (*"BRANCH_TARGETS .L_a,.L_b"*)', "a: EXIT", "b: EXIT", "c: EXIT")
    assert told[0][2] == (1, 2)
    # Without the annotation it may go to any label.
    assert 3 in shape("BRX R4 -0x10", "a: EXIT", "b: EXIT", "c: EXIT")[0][2]


NEST = (
    "MOV R0, 0x1",
    "outer: FFMA R1, R1, R2, R3",
    "inner: FFMA R4, R5, R6, R4",
    "FFMA R4, R5, R6, R4",
    "@P0 BRA `(.L_inner)",
    "FADD R1, R4, R5",
    "@P1 BRA `(.L_outer)",
    "EXIT",
    "trap: BRA `(.L_trap)",
)


def test_loops_nest() -> None:
    outer, inner = find_loops(flow_graph(written(*NEST)))
    assert (outer.depth, outer.parent, sorted(outer.blocks), sorted(outer.own)) == (1, None, [1, 2, 3], [1, 3])
    assert (inner.depth, inner.parent, inner.blocks) == (2, outer.header, inner.own)


def test_the_endless_branch_behind_the_exit_is_no_loop() -> None:
    graph = flow_graph(written(*NEST))
    assert len(find_loops(graph)) == 2
    assert dominators(graph)[-1] is None


def test_two_ways_back_make_one_loop() -> None:
    (loop,) = find_loops(flow_graph(written("a: NOP", "@P0 BRA `(.L_a)", "NOP", "@P1 BRA `(.L_a)", "EXIT")))
    assert sorted(loop.blocks) == [0, 1]


def test_what_has_two_doors_is_no_natural_loop() -> None:
    assert find_loops(flow_graph(written("@P0 BRA `(.L_b)", "a: NOP", "b: NOP", "@P1 BRA `(.L_a)", "EXIT"))) == ()


def test_a_loop_that_two_functions_share_is_found() -> None:
    code = ("@P0 BRA `(.L_s)", "EXIT", "$f$g: NOP", "s: NOP", "@P1 BRA `(.L_s)", "EXIT")
    (loop,) = find_loops(flow_graph(written(*code)))
    assert flow_graph(written(*code)).blocks[loop.header].start == 3


def test_the_main_loop_is_the_innermost_with_the_arithmetic() -> None:
    graph = flow_graph(written(*NEST))
    found = main_loop(written(*NEST))
    assert found is not None
    assert graph.blocks[found.header].start == 2


def test_counts_decide_where_there_are_some() -> None:
    # The inner loop never ran.
    executed = {16: 100, 80: 100}
    found = main_loop(written(*NEST), executed)
    assert found is not None
    assert found.depth == 1


def test_without_arithmetic_there_is_no_main_loop() -> None:
    assert main_loop(written("a: IADD3 R0, R0, 0x1, RZ", "@P0 BRA `(.L_a)", "EXIT")) is None
    assert main_loop(written("FFMA R0, R1, R2, R3", "EXIT")) is None


NOTHING = written(*["NOP"] * 9)


@st.composite
def graphs(draw: st.DrawFn) -> FlowGraph:
    """Any graph of blocks, reachable or not, reducible or not, with one or two entries."""
    size = draw(st.integers(1, 9))
    successors = st.lists(st.integers(0, size - 1), max_size=3, unique=True).map(tuple)
    blocks = tuple(Block(i, i + 1, draw(successors)) for i in range(size))
    entries = draw(st.sets(st.integers(0, size - 1), max_size=1))
    return FlowGraph(NOTHING, blocks, tuple(sorted({0} | entries)))


def reached(graph: FlowGraph, without: int | None = None) -> set[int]:
    seen: set[int] = set()
    stack = [entry for entry in graph.entries if entry != without]
    while stack:
        at = stack.pop()
        if at not in seen:
            seen.add(at)
            stack += [s for s in graph.blocks[at].successors if s != without]
    return seen


@given(graphs())
def test_dominators_by_their_definition(graph: FlowGraph) -> None:
    idom = dominators(graph)
    alive = reached(graph)
    assert {block for block, parent in enumerate(idom) if parent is not None} == alive
    for above in alive:
        cut_off = alive - reached(graph, without=above)
        assert {below for below in alive if dominates(idom, above, below)} == cut_off


@given(graphs())
def test_loops_by_their_definition(graph: FlowGraph) -> None:
    idom = dominators(graph)
    loops = {loop.header: loop for loop in find_loops(graph)}
    back = {s for i, block in enumerate(graph.blocks) for s in block.successors if dominates(idom, s, i)}
    assert set(loops) == back
    for loop in loops.values():
        # One door, and a way back to it from everywhere inside.
        assert all(dominates(idom, loop.header, block) for block in loop.blocks)
        for block in loop.blocks:
            assert back_inside(graph, block, loop.header, loop.blocks)
        assert loop.own <= loop.blocks
        around = [o for o in loops.values() if o is not loop and loop.header in o.blocks]
        assert loop.depth == len(around) + 1
        assert all(loop.blocks <= o.blocks for o in around)
        if loop.parent is not None:
            assert loops[loop.parent].depth == loop.depth - 1
    owned = [block for loop in loops.values() for block in loop.own]
    assert len(owned) == len(set(owned))


def back_inside(graph: FlowGraph, start: int, header: int, body: frozenset[int]) -> bool:
    seen: set[int] = set()
    stack = [start]
    while stack:
        for successor in graph.blocks[stack.pop()].successors:
            if successor == header:
                return True
            if successor in body and successor not in seen:
                seen.add(successor)
                stack.append(successor)
    return False


@pytest.mark.in_turns(20)
def test_blocks_cover_every_kernel_once() -> None:
    for arch, where in {(arch, where) for arch, where, _ in everything()}:
        file, _, name = where.partition("/")
        function = functions(file, arch)[name]
        graph = flow_graph(function)
        assert [block.start for block in graph.blocks[1:]] == [block.stop for block in graph.blocks[:-1]], where
        assert graph.blocks[-1].stop == len(function.instructions)
        for block in graph.blocks:
            inside = function.instructions[block.start : block.stop - 1]
            assert not {"BRA", "BRX", "EXIT", "RET", "CALL"} & {i.opcode for i in inside}, where


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90", "sm_100"])
def test_main_loops_of_compiled_kernels(arch: str) -> None:
    # 4 steps of 8 x 4 FMAs, unrolled; a step of 8, inside a loop whose epilogue has 32; an mma of 16 x 16 x 16 a step.
    for file, kernel, opcode, count, depth in [
        ("control", "tiled", "FFMA", 128, 1),
        ("control", "nested", "FFMA", 8, 2),
        ("tensor", "wmma_loop", "HMMA", {"sm_75": 4}.get(arch, 2), 1),
    ]:
        function = functions(file, arch)[kernel]
        loop = main_loop(function)
        assert loop is not None
        assert loop.depth == depth
        inside = list(flow_graph(function).instructions(*loop.own))
        assert opcode_mix(inside)[opcode] == count
        assert any(flops(instruction) for instruction in inside)
