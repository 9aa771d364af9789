"""The product of operands that are sent in panels: each turn multiplies one panel of A by one of B."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor

from gemmlab.api import gemm as multiply
from gemmlab.choices import explain_choice as library_choice
from gemmlab.dispatch.precision_rule import HIGHEST
from gemmlab.distributed.agreement import answered
from gemmlab.distributed.algorithm import Candidate
from gemmlab.distributed.panel_sources import common_memory, sources_of
from gemmlab.distributed.panel_turns import Turn, own_turn, turns_of_ranks
from gemmlab.distributed.placements import COLUMNS, ROWS, share
from gemmlab.distributed.traffic import Traffic


def product_in_turns(
    a: DTensor, b: DTensor, added: DTensor | None, factors: tuple[float, float], options: dict[str, Any],
    way: Candidate, traffic: Traffic, agreed: Callable[[], None] | None,
) -> torch.Tensor:  # fmt: skip
    """Return this rank's part of C. While the panels of one turn are multiplied, those of the next are sent.

    `agreed` raises an exception if the ranks' calls differ; it is `None` if the ranks have agreed before. It is called
    before the first message, but after the product of the rank's own terms, if there is one, has begun.
    """
    # Both operands have k as their first axis. For A this is a transposed view.
    left, right = a.to_local().t(), b.to_local()
    alpha, beta = factors
    c = None if added is None else added.to_local()
    result = left.new_empty((left.shape[1], right.shape[1]))
    if a.shape[1] == 0 or alpha == 0.0:
        if agreed:
            agreed()
        return result.zero_() if c is None else beta * c
    groups = _group(a, way.a, COLUMNS), _group(b, way.b, ROWS)
    shares, rank = _shares(a.shape[1], groups)
    extents = left.shape[1], right.shape[1], a.shape[1]
    sends: dict[str, Any] = {
        "sends_a": groups[0] is not None, "sends_b": groups[1] is not None, "fixed": options["reproducible"],
        "by_terms": way.by_terms,
    }  # fmt: skip
    written: tuple[range, range] | None = None

    def multiply_part(one: torch.Tensor, two: torch.Tensor, turn: Turn, how: dict[str, Any]) -> None:
        nonlocal written
        part = slice(turn.rows.start, turn.rows.stop), slice(turn.columns.start, turn.columns.stop)
        first, written = written != (turn.rows, turn.columns), (turn.rows, turn.columns)
        into = result[part]
        onto = (None if c is None else c[part]) if first else into
        factor = 0.0 if onto is None else beta if first else 1.0
        multiply(one.t(), two, c=onto, alpha=alpha, beta=factor, out=into, **how)

    begun = _recorded(left.device)
    if mine := own_turn(*extents, own=shares[rank], **sends):
        one, two = (
            local if group else local[mine.terms.start : mine.terms.stop]
            for local, group in zip((left, right), groups, strict=True)
        )
        multiply_part(
            one[:, mine.rows.start : mine.rows.stop], two[:, mine.columns.start : mine.columns.stop], mine, options
        )
    if agreed:
        agreed()
    memory = common_memory(groups, left.device)
    turns_of_all = turns_of_ranks(*extents, shares=shares, apart=memory is not None, **sends)
    turns = turns_of_all[rank]
    sources = sources_of((left, right), groups, a.shape[1], turns_of_all, rank, traffic, begun, memory)
    by_messages = memory is None and groups != (None, None)
    for source in sources:
        answered(lambda source=source: source.start(0))
    for number, turn in enumerate(turns):
        adds = written == (turn.rows, turn.columns)
        with memory.alternate(number, after_all=adds) if memory else nullcontext():
            one, two = answered(lambda number=number: [source.take(number) for source in sources])
            if number + 1 < len(turns):
                for source in sources:
                    answered(lambda source=source, number=number: source.start(number + 1))
            for terms in turn.parts:
                at = slice(terms.start - turn.terms.start, terms.stop - turn.terms.start)
                how = options | _beside_messages(one[at].t(), two[at], options) if by_messages else options
                multiply_part(one[at], two[at], turn, how)
            for source in sources:
                source.finish(number)
    if memory:
        memory.meet()
        memory.join()
    return result


def _shares(depth: int, groups: tuple[Any, Any]) -> tuple[list[range], int]:
    """Return the parts of k that the ranks of a group own, and this rank's number in the group, if k of one operand
    alone is cut; else an empty part, as if of a single rank.
    """
    group = groups[0] or groups[1]
    if group is None or None not in groups:
        return [range(0)], 0
    ranks = dist.get_world_size(group)
    return [share(depth, ranks, rank) for rank in range(ranks)], dist.get_rank(group)


def _recorded(device: torch.device) -> Any:
    """Return an event after the work that the current stream has now; `None` on a CPU."""
    return torch.cuda.current_stream(device).record_event() if device.type == "cuda" else None


def _beside_messages(left: torch.Tensor, right: torch.Tensor, options: dict[str, Any]) -> dict[str, Any]:
    """Return options that choose a kernel of many short blocks, if gemmlab would take a persistent one; else no
    options. There are none on a CPU, for other precisions than `"highest"`, and if no such kernel was considered.

    A persistent kernel has one long block for each multiprocessor. While NCCL occupies some of these, blocks that find
    no free one would begin only after others have ended.
    """
    if left.device.type != "cuda" or options["precision"] != HIGHEST:
        return {}
    usual = library_choice(left, right, **options)
    short = next((one for one in usual.considered if "BLOCKS" not in one.config), None)
    if "BLOCKS" not in usual.config or short is None:
        return {}
    return {"kernel": short.kernel, "config": dict(short.config)}


def _group(x: DTensor, way: tuple[str, ...], cut: str) -> Any:
    """Return the process group among whose ranks k of an operand is cut; `None` if k is whole on every rank."""
    mesh = x.device_mesh
    return next(
        (mesh.get_group(dimension) for dimension, word in enumerate(way) if word == cut and mesh.size(dimension) > 1),
        None,
    )
