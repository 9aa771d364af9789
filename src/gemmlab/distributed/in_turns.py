"""The product of operands that are sent in panels: each turn multiplies one panel of A by one of B."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor

from gemmlab.api import gemm as multiply
from gemmlab.choices import explain_choice as library_choice
from gemmlab.dispatch.precision_rule import HIGHEST
from gemmlab.distributed.agreement import answered
from gemmlab.distributed.candidate import Candidate
from gemmlab.distributed.message_group import mesh_group
from gemmlab.distributed.panel_sources import common_memory, sources_of
from gemmlab.distributed.panel_turns import Turn, own_turn, turns_of_ranks
from gemmlab.distributed.placements import COLUMNS, ROWS, place_in, share
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
        return result.zero_() if c is None else torch.mul(c, beta, out=result)
    mesh = a.device_mesh
    along = _along_k(mesh, way.a, COLUMNS), _along_k(mesh, way.b, ROWS)
    extents = left.shape[1], right.shape[1], a.shape[1]
    sends: dict[str, Any] = {
        "sends_a": bool(along[0]), "sends_b": bool(along[1]), "fixed": options["reproducible"],
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
    own = _share_at(mesh, a.shape[1], () if all(along) else along[0] or along[1], place_in(mesh))
    if mine := own_turn(*extents, own=own, **sends):
        one, two = (
            local if sent else local[mine.terms.start : mine.terms.stop]
            for local, sent in zip((left, right), along, strict=True)
        )
        multiply_part(
            one[:, mine.rows.start : mine.rows.stop], two[:, mine.columns.start : mine.columns.stop], mine, options
        )
    if agreed:
        agreed()
    # Ranks wait for each other when a group is made, so all must have agreed.
    groups = _group(mesh, along[0]), _group(mesh, along[1])
    shares = _shares(mesh, a.shape[1], along[0], groups[0]), _shares(mesh, a.shape[1], along[1], groups[1])
    memory = common_memory(groups, left.device)
    # If both operands are sent, or none, all ranks have the same turns.
    alone = None in groups and (groups[0] or groups[1])
    rank, owned = (dist.get_rank(alone), shares[0] or shares[1]) if alone else (0, [range(0)])
    turns_of_all = turns_of_ranks(*extents, shares=owned, apart=memory is not None, **sends)
    turns = turns_of_all[rank]
    sources = sources_of((left, right), groups, shares, turns_of_all, rank, traffic, begun, memory)
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


def _along_k(mesh: DeviceMesh, way: tuple[str, ...], cut: str) -> tuple[int, ...]:
    """Return the dimensions of the mesh along which k of an operand is cut; none if k is whole on every rank."""
    return tuple(dimension for dimension, word in enumerate(way) if word == cut and mesh.size(dimension) > 1)


def _group(mesh: DeviceMesh, dimensions: tuple[int, ...]) -> Any:
    return mesh_group(mesh, dimensions) if dimensions else None


def _share_at(mesh: DeviceMesh, depth: int, dimensions: tuple[int, ...], at: Sequence[int]) -> range:
    """Return the terms of k of the rank at a place of the mesh. k is cut along `dimensions`, one after another; without
    any, a rank has no terms of its own.
    """
    found = range(depth if dimensions else 0)
    for dimension in dimensions:
        part = share(len(found), mesh.size(dimension), at[dimension])
        found = found[part.start : part.stop]
    return found


def _shares(mesh: DeviceMesh, depth: int, dimensions: tuple[int, ...], group: Any) -> list[range]:
    """Return the terms of k of each rank of a group, in the group's order, which may be another than the mesh's."""
    if group is None:
        return []
    places = {int(rank): at for at, rank in np.ndenumerate(mesh.mesh.numpy())}
    return [_share_at(mesh, depth, dimensions, places[rank]) for rank in dist.get_process_group_ranks(group)]
