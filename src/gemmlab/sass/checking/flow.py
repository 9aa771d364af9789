"""Pending results at every instruction: a forward analysis over the control flow graph.

A result is pending from the issue of its instruction until it can be read. For arithmetic this takes a fixed number of
cycles; for memory, conversions and special registers it takes until an instruction has waited for their dependency
barrier. Operands of such an instruction are pending too, because it may read them after issue. Where paths join, the
latest issue counts, and only the barriers that protect the result on all paths.

A result written under `@P0` does not affect an instruction under `@!P0`, unless P0 is written in between.

Dependency barriers are described by S. Gray, maxas; Z. Jia et al., "Dissecting the NVIDIA Volta GPU Architecture via
Microbenchmarking"; R. Huerta et al., "Analyzing Modern NVIDIA GPU cores". The order within queues is inferred from
NVIDIA's own code, which relies on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gemmlab.sass.blocks import Block, FlowGraph
from gemmlab.sass.checking.steps import Step
from gemmlab.sass.checking.tracker import Meeting, State, Tracker


def meetings(graph: FlowGraph, steps: Sequence[Step]) -> Iterator[Meeting]:
    """Yield every access to a pending result or operand, over the worst path to the accessing instruction.

    `steps` are those of the graph's function. Unreachable blocks have no meetings.
    """
    entering = _entering(graph, steps)
    for index, block in enumerate(graph.blocks):
        state = entering[index]
        if state is not None:
            yield from _through(block, steps, state.copy())


def _entering(graph: FlowGraph, steps: Sequence[Step]) -> list[State | None]:
    found: list[State | None] = [None] * len(graph.blocks)
    for entry in graph.entries:
        found[entry] = State()
    work = list(graph.entries)
    while work:
        index = work.pop()
        block, entering = graph.blocks[index], found[index]
        if entering is None:
            continue
        state = entering.copy()
        for _ in _through(block, steps, state):
            pass
        for following in block.successors:
            leaving = _on_edge(steps, block, graph.blocks[following], state)
            known = found[following]
            if known is None:
                found[following] = leaving
            elif not known.join(leaving):
                continue
            if following not in work:
                work.append(following)
    return found


def _on_edge(steps: Sequence[Step], block: Block, following: Block, state: State) -> State:
    """Return the state on the edge from `block` to `following`; `state` is that at the end of `block`.

    The results of instructions that did not run if this edge is taken are left out: those whose guard is opposite to
    the condition under which the branch at the end of `block` takes the edge.
    """
    last, left = steps[block.stop - 1], state.copy()
    if last.guard is None or last.instruction.opcode not in ("BRA", "EXIT") or len(last.reads) > 1:
        return left
    target = {operand.value // 16 for operand in last.instruction.operands if operand.kind == "label"}
    if following.start in target and following.start == block.stop:
        return left
    # On this edge the condition `holds`, so instructions under the opposite condition did not run.
    cell, negated = last.guard
    holds = (cell, negated if following.start in target else not negated)
    absent = {
        producer
        for producer, _ in (*state.fixed, *state.late, *state.operands)
        if steps[producer].guard == (holds[0], not holds[1]) and producer not in state.changed
    }
    for table in (left.fixed, left.late, left.operands):
        for key in [key for key in table if key[0] in absent]:
            del table[key]
    return left


def _through(block: Block, steps: Sequence[Step], state: State) -> Iterator[Meeting]:
    """Yield the meetings of a block in order, and update `state` to the end of the block."""
    tracker = Tracker(steps, state)
    for number in range(block.start, block.stop):
        yield from tracker.run(number)
    tracker.finish()
