"""Loops of a function, found by dominators and back edges, and its main loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gemmlab.sass.blocks import FlowGraph, flow_graph
from gemmlab.sass.instruction import Instruction, SassFunction
from gemmlab.sass.metrics import flops

TRIPS = 10
"""Iterations that a loop is assumed to run if executions were not counted."""


@dataclass(frozen=True, slots=True)
class Loop:
    """A natural loop: its header, which is the target of a back edge, and all blocks that reach the back edge without
    passing the header. A block is named by its index in `FlowGraph.blocks`.
    """

    header: int
    """Index of the header block."""
    blocks: frozenset[int]
    """Indices of all blocks of the loop: the header and the blocks of inner loops are included."""
    depth: int
    """Nesting depth, 1 for an outermost loop."""
    parent: int | None
    """Index of the header block of the innermost enclosing loop; `None` for an outermost loop."""
    own: frozenset[int]
    """Indices of those `blocks` that are in no inner loop."""


def dominators(graph: FlowGraph) -> tuple[int | None, ...]:
    """Return the index of each block's immediate dominator: the last other block on every path from an entry to it.

    An entry has its own index, and so has a block that two functions share. An unreachable block has `None`.
    """
    order = _postorder(graph)
    rank = {block: place for place, block in enumerate(order)}
    before = _predecessors(graph)
    # A virtual root above all entries makes the dominators one tree. It has the highest rank.
    root = -1
    rank[root] = len(order)
    found: dict[int, int] = {root: root, **dict.fromkeys(graph.entries, root)}

    def meet(a: int, b: int) -> int:
        while a != b:
            a, b = (found[a], b) if rank[a] < rank[b] else (a, found[b])
        return a

    changed = True
    while changed:
        changed = False
        for block in reversed(order):
            if block in graph.entries:
                continue
            known = [p for p in before[block] if p in found]
            best = known[0]
            for other in known[1:]:
                best = meet(best, other)
            if found.get(block) != best:
                found[block] = best
                changed = True
    above = (found.get(block) for block in range(len(graph.blocks)))
    return tuple(block if parent == root else parent for block, parent in enumerate(above))


def find_loops(graph: FlowGraph) -> tuple[Loop, ...]:
    """Return all natural loops in order of their headers; all back edges to one header belong to one loop."""
    idom = dominators(graph)
    # Unreachable blocks are in no loop, even if they branch into one.
    before = [[p for p in found if idom[p] is not None] for found in _predecessors(graph)]
    bodies: dict[int, set[int]] = {}
    for block, data in enumerate(graph.blocks):
        for header in data.successors:
            if dominates(idom, header, block):
                bodies.setdefault(header, {header}).update(_reaching(block, header, before))
    return tuple(_loop(header, bodies) for header in sorted(bodies))


def dominates(idom: Sequence[int | None], above: int, below: int) -> bool:
    """Return whether every path from an entry to block `below` passes block `above`; false if `below` is unreachable.

    `idom` has the immediate dominators (`dominators`). A reachable block dominates itself.
    """
    at, parent = below, idom[below]
    while parent is not None:
        if at == above:
            return True
        if parent == at:
            return False
        at, parent = parent, idom[parent]
    return False


def main_loop(function: SassFunction, executed: Mapping[int, int] | None = None) -> Loop | None:
    """Return the loop that does the most floating-point operations in its `own` blocks; `None` if no loop does any.

    `executed` maps an instruction's address to the number of times that warps executed it. Without it, each level of
    nesting is assumed to run `TRIPS` times as often as the level around it. A large epilogue then does not outweigh an
    inner loop.
    """
    graph = flow_graph(function)

    def work(loop: Loop) -> int:
        def weight(instruction: Instruction) -> int:
            return TRIPS**loop.depth if executed is None else executed.get(instruction.address, 0)

        return sum(flops(instruction) * weight(instruction) for instruction in graph.instructions(*loop.own))

    ranked = sorted(find_loops(graph), key=lambda loop: (-work(loop), -loop.depth, loop.header))
    return ranked[0] if ranked and work(ranked[0]) else None


def _loop(header: int, bodies: Mapping[int, set[int]]) -> Loop:
    around = [other for other, body in bodies.items() if other != header and header in body]
    inner = [body for other, body in bodies.items() if other != header and other in bodies[header]]
    return Loop(
        header=header,
        blocks=frozenset(bodies[header]),
        depth=1 + len(around),
        parent=min(around, key=lambda other: len(bodies[other]), default=None),
        own=frozenset(bodies[header].difference(*inner)),
    )


def _reaching(block: int, header: int, before: Sequence[Sequence[int]]) -> set[int]:
    # Blocks that reach `block` without passing the header, and `block` itself.
    visited = {block}
    stack = [block] if block != header else []
    while stack:
        fresh = [p for p in before[stack.pop()] if p not in visited and p != header]
        visited.update(fresh)
        stack += fresh
    return visited


def _predecessors(graph: FlowGraph) -> list[list[int]]:
    before: list[list[int]] = [[] for _ in graph.blocks]
    for index, block in enumerate(graph.blocks):
        for successor in block.successors:
            before[successor].append(index)
    return before


def _postorder(graph: FlowGraph) -> list[int]:
    # Postorder of the reachable blocks. It is iterative, because thousands of blocks would exceed the recursion limit.
    order: list[int] = []
    visited: set[int] = set()
    for entry in graph.entries:
        if entry in visited:
            continue
        visited.add(entry)
        stack = [(entry, iter(graph.blocks[entry].successors))]
        while stack:
            block, rest = stack[-1]
            following = next((s for s in rest if s not in visited), None)
            if following is None:
                order.append(block)
                stack.pop()
            else:
                visited.add(following)
                stack.append((following, iter(graph.blocks[following].successors)))
    return order
