"""Comparison of the ranks' arguments before a distributed product: all ranks must make the same call."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray

from gemmlab.core.errors import DeviceError, UsageError
from gemmlab.core.version import __version__
from gemmlab.distributed.message_group import host_group

CALL = "gemmlab.distributed.gemm"
VERSION = ("version of gemmlab", __version__)
MOST_PARTS = 2
HEAD = 2 + MOST_PARTS
"""Numbers at the head of a rank's message: its rank, 1 from `decline` or 0, and the extents of its `FreePart`s."""
TEXT_BYTES = 480
"""Bytes of the facts' text in a message. A longer text is cut; only a long `VERSION`, which is last, makes it so."""
NUMBERS = HEAD + TEXT_BYTES // 8
"""Length of a message, in int64 numbers."""
MOST_NAMED = 8
"""Most ranks, and most values, that an error names together."""
CAUSE = re.compile(r"(?:\[\S+:\d+\] )?(.+?)(?:\. |$)", re.MULTILINE)
"""The cause in torch's error. gloo writes a place in its source before that, and general advice after it."""
Messages = NDArray[np.int64]
"""The messages of all ranks of a mesh, one a row, in the same order on all ranks."""


@dataclass(frozen=True, slots=True)
class FreePart:
    """This rank's part of an operand along the axis that is not k, which may be cut otherwise than torch cuts."""

    operand: str
    lines: str
    """The name of what the axis counts: `placements.ROWS` or `placements.COLUMNS`."""
    extent: int
    """Extent of the part."""
    whole: int
    """Extent of the operand."""
    along: tuple[int, ...]
    """Dimensions of the mesh along which the axis is cut."""


def agree(facts: Sequence[tuple[str, object]], parts: Sequence[FreePart], mesh: Any) -> None:
    """Compare the (name, value) pairs `facts` of all ranks of a mesh, and their parts of the operands. Every rank
    passes the same names in one order. Where values are equal, `parts` differ in the extent alone.

    Raises `UsageError` on every rank, which names ranks: if any value differs; if a rank has called `decline`; if the
    parts are not all of an operand, or ranks that must have the same part have others. This function and `decline`
    raise `DeviceError` if a rank does not answer within the time limit of its process group.
    """
    named = [*facts, VERSION]
    messages = _gather(mesh, 0, [part.extent for part in parts], "\n".join(repr(value) for _, value in named))
    ranks, declined, texts = messages[:, 0], messages[:, 1] == 1, messages[:, HEAD:]
    if declined.any():
        raise UsageError(
            f"{CALL}: the arguments on {_on(ranks[declined].tolist())} are wrong; the error there says how"
        )
    if (texts != texts[0]).any():
        values = zip(*(text.tobytes().rstrip(b"\0").decode().split("\n") for text in texts), strict=False)
        differ = ", ".join(
            f"{name} ({_by_value(those, ranks)})"
            for (name, _), those in zip(named, values, strict=False)
            if len(set(those)) > 1
        )
        raise UsageError(f"{CALL}: the ranks disagree about {differ}; all of them must make the same call")
    for number, part in enumerate(parts):
        _check_parts(part, messages[:, 2 + number], ranks, mesh.mesh.numpy())


def decline(mesh: Any) -> None:
    """Take part in the other ranks' `agree` for a rank with wrong arguments, so that they raise and do not wait."""
    _gather(mesh, 1, [], "")


def _check_parts(part: FreePart, extents: NDArray[np.int64], ranks: NDArray[np.int64], mesh: NDArray[np.int64]) -> None:
    """Raise `UsageError` unless the ranks' parts are all of an operand. `extents` are those of `ranks`, which ascend;
    `mesh` has the rank at each place.
    """
    first = mesh
    for dimension in set(range(mesh.ndim)) - set(part.along):
        first = first.take([0], axis=dimension)
    at, owner = (np.searchsorted(ranks, each) for each in (mesh, np.broadcast_to(first, mesh.shape)))
    if (extents[at] != extents[owner]).any():
        one, other = (each[extents[at] != extents[owner]][0] for each in (at, owner))
        raise UsageError(
            f"{CALL}: rank {ranks[one]}'s part of {part.operand} has {extents[one]} {part.lines} and rank "
            f"{ranks[other]}'s has {extents[other]}; both must have the same {part.lines} of {part.operand}"
        )
    owners = np.unique(owner)
    total = extents[owners].sum()
    if total != part.whole:
        raise UsageError(
            f"{CALL}: {part.operand} has {part.whole} {part.lines}; the ranks' parts of it have {total} together: "
            f"{_by_value(extents[owners].tolist(), ranks[owners])}"
        )


def _gather(mesh: Any, declined: int, extents: Sequence[int], text: str) -> Messages:
    """Send this rank's message to all ranks of a mesh, and return those of all, in the order of ranks.

    Hosts send them, so that no GPU is kept from its products.
    """
    head = [dist.get_rank(), declined, *extents, *[0] * (MOST_PARTS - len(extents))]
    content = np.array(head, np.int64).tobytes() + text.encode()[:TEXT_BYTES].ljust(TEXT_BYTES, b"\0")
    gathered = torch.frombuffer(bytearray(content), dtype=torch.int64).view(1, NUMBERS)
    for dimension in range(mesh.ndim):
        group = host_group(mesh.get_group(dimension))
        found = [torch.empty_like(gathered) for _ in range(dist.get_world_size(group))]
        answered(lambda: dist.all_gather(found, gathered, group=group))  # noqa: B023
        gathered = torch.cat(found)
    messages: Messages = gathered.numpy()
    return messages[np.argsort(messages[:, 0])]


def _by_value(values: Sequence[object], ranks: NDArray[np.int64]) -> str:
    """Return which ranks have which value: `(8, 6) on ranks 0, 2; (9, 6) on rank 1`."""
    of_value: dict[object, list[int]] = {}
    for value, rank in zip(values, ranks.tolist(), strict=True):
        of_value.setdefault(value, []).append(rank)
    texts = [f"{value} on {_on(some)}" for value, some in of_value.items()]
    return "; ".join(texts[:MOST_NAMED]) + ("; ..." if len(texts) > MOST_NAMED else "")


def _on(ranks: Sequence[int]) -> str:
    named = ", ".join(map(str, ranks[:MOST_NAMED])) + (", ..." if len(ranks) > MOST_NAMED else "")
    return f"rank{'s' if len(ranks) > 1 else ''} {named}"


def answered(collective: Any) -> Any:
    """Run a collective operation and return its result.

    Any `RuntimeError` of torch becomes a `DeviceError`: the usual reasons are that another rank ended, or that the time
    limit of the process group passed.
    """
    try:
        return collective()
    except (RuntimeError, dist.DistError) as error:
        cause = CAUSE.match(str(error))
        raise DeviceError(
            f"{CALL}: another rank did not take part: it ended, failed, or took longer than its process group allows"
            + (f" ({cause[1]})" if cause else "")
        ) from error
