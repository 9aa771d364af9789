"""Operands get another layout before a product, and partial sums are added after it.

Each rank sends to each other the block that it has and the other needs, and nothing else. torch's redistribution would
change one dimension of the mesh after another, gather more than a rank needs, and with gloo gather all of a matrix.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor

from gemmlab.distributed.agreement import answered
from gemmlab.distributed.mesh_parts import Parts, addends, areas, overlaps, part_at, parts_of, received_bytes, stages
from gemmlab.distributed.message_group import backend_of, connect, mesh_group
from gemmlab.distributed.placements import OTHER, REPLICA, SUM, place_in, placement_for, share, words
from gemmlab.distributed.traffic import Traffic

WORDS = 1 << 24
"""Most elements that a rank sends, and most that it receives, at one time: 64 MiB of float32 each."""


def placed(x: DTensor, way: tuple[str, ...], traffic: Traffic) -> DTensor:
    """Return a matrix with the layout `way`; all ranks of its mesh call this."""
    before = words(x.placements)
    if before == way:
        return x
    placements = [placement_for(word) for word in way]
    if OTHER in before:
        found: DTensor = answered(lambda: x.redistribute(x.device_mesh, placements))
        return found
    local = moved(x.to_local(), tuple(x.shape), before, way, x.device_mesh, traffic)
    return DTensor.from_local(local, x.device_mesh, placements, run_check=False, shape=x.shape, stride=x.stride())


def moved(
    local: torch.Tensor, shape: tuple[int, ...], before: tuple[str, ...], into: tuple[str, ...], mesh: DeviceMesh,
    traffic: Traffic,
) -> torch.Tensor:  # fmt: skip
    """Return this rank's part of a matrix with the layout `into`; `local` is its part with the layout `before`. It is a
    view of `local` if no rank receives anything.
    """
    for stage in stages(before, into):
        local, before = _moved_once(local, shape, before, stage, mesh, traffic), stage
    return local


def _moved_once(
    local: torch.Tensor, shape: tuple[int, ...], before: tuple[str, ...], into: tuple[str, ...], mesh: DeviceMesh,
    traffic: Traffic,
) -> torch.Tensor:  # fmt: skip
    extents, at = tuple(mesh.shape), place_in(mesh)
    old, new = parts_of(shape, before, extents), parts_of(shape, into, extents)
    has, needs = part_at(old, at), part_at(new, at)
    common = overlaps(has, needs)
    extent = [int(stop - start) for start, stop in needs]
    if received_bytes(shape, before, into, extents) == 0:
        # An empty part has both extents all the same, and `common` may lack one.
        return _block(local, has, common) if areas(needs) else local.new_empty(extent)
    adds = addends(before, into, extents) > 1
    found = local.new_zeros(extent) if adds else local.new_empty(extent)
    _block(found, needs, common).copy_(_block(local, has, common))
    group, ranks = mesh_group(mesh), mesh.mesh.flatten().tolist()
    connect(group, local.device)
    by_host = backend_of(group, local.device) == dist.Backend.GLOO

    def exchange(batch: list[Blocks]) -> None:
        messages, buffers, arriving = [], list[torch.Tensor](), list[tuple[torch.Tensor, torch.Tensor]]()
        for rank, sent, peer, received in batch:
            if areas(sent):
                view = _block(local, has, sent)
                buffer = (view.cpu() if by_host else view).contiguous()
                buffers += [buffer] if buffer.data_ptr() != view.data_ptr() else []
                messages.append(dist.P2POp(dist.isend, buffer, ranks[rank], group))
            if areas(received):
                target = _block(found, needs, received)
                direct = target.is_contiguous() and not adds and not (by_host and target.is_cuda)
                buffer = target if direct else target.new_empty(target.shape, device="cpu" if by_host else None)
                buffers += [] if direct else [buffer]
                messages.append(dist.P2POp(dist.irecv, buffer, ranks[peer], group))
                arriving.append((target, buffer))
        traffic.hold(buffers)
        traffic.received += sum(buffer.nbytes for _, buffer in arriving)
        answered(lambda: _exchanged(messages))
        for target, buffer in arriving:
            if adds:
                target.add_(buffer.to(target.device))
            elif buffer is not target:
                target.copy_(buffer)

    for batch in _batches(old, new, before, into, at):
        exchange(batch)
    return found


Blocks = tuple[int, Parts, int, Parts]
"""A rank of the mesh, in its order, the block that it gets from this rank, another rank, and the block from that."""


def _batches(
    old: Parts, new: Parts, before: Sequence[str], into: Sequence[str], at: tuple[int, ...]
) -> Iterator[list[Blocks]]:
    """Yield what is exchanged at one time, at most `WORDS` elements in each direction. All ranks have as many batches.

    In round d a rank sends to the rank that is d further and receives from the one that is d before.
    """
    extents = old.shape[2:]
    ranks, own = prod(extents), int(np.ravel_multi_index(at, extents))
    partner = np.ones(extents, bool)
    for dimension, (one, other) in enumerate(zip(before, into, strict=True)):
        # A rank takes replicas from itself, and sums that stay sums: it exchanges nothing along this dimension.
        if one == REPLICA or one == other == SUM:
            partner &= np.indices(extents)[dimension] == at[dimension]
    lone = (2, 2, *[1] * len(extents))
    sent = (overlaps(part_at(old, at).reshape(lone), new) * partner).reshape(2, 2, ranks)
    received = (overlaps(old, part_at(new, at).reshape(lone)) * partner).reshape(2, 2, ranks)
    most = int(min(areas(old).max(), areas(new).max()))
    pieces, together = -(-most // WORDS), max(1, WORDS // most)
    for first in range(1, ranks, together):
        further = [((own + d) % ranks, (own - d) % ranks) for d in range(first, min(ranks, first + together))]
        for piece in range(pieces):
            yield [
                (to, _piece(sent[..., to], pieces, piece), source, _piece(received[..., source], pieces, piece))
                for to, source in further
            ]


def _piece(block: Parts, pieces: int, index: int) -> Parts:
    """Return one of the pieces of a block, which is cut along its longer axis."""
    start, stop = np.array(block[:, 0]), np.array(block[:, 1])
    axis = int(np.argmax(stop - start))
    part = share(max(0, int(stop[axis] - start[axis])), pieces, index)
    start[axis], stop[axis] = start[axis] + part.start, start[axis] + part.stop
    return np.stack([start, stop], axis=1)


def _block(x: torch.Tensor, part: Parts, block: Parts) -> torch.Tensor:
    """Return a view of a block of a matrix; `x` has the rectangle `part` of it."""
    rows, columns = (
        slice(int(start - first), int(max(start, stop) - first))
        for (first, _), (start, stop) in zip(part, block, strict=True)
    )
    return x[rows, columns]


def _exchanged(messages: list[dist.P2POp]) -> None:
    for work in dist.batch_isend_irecv(messages) if messages else ():
        work.wait()
