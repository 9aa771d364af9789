"""Comparison of the ranks' arguments before a distributed product: all ranks must make the same call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from zlib import crc32

import torch
import torch.distributed as dist

from gemmlab.core.errors import DeviceError, UsageError
from gemmlab.core.version import __version__
from gemmlab.distributed.message_group import host_group

CALL = "gemmlab.distributed.gemm"
VERSION = ("version of gemmlab", __version__)
NUMBERS = 16
"""Numbers that a rank sends, with or without arguments to compare: a status, digests, and zeros."""


def begin_agreement(facts: Sequence[tuple[str, object]], mesh: Any) -> Callable[[], None]:
    """Begin to compare the (name, value) pairs `facts` of all ranks of a mesh; every rank passes the same names in one
    order. Return a function that waits for the answer.

    The function raises `UsageError` on every rank if any value differs, with the names of these values, or if a rank
    has called `decline`. Both raise `DeviceError` if a rank does not answer within the time limit of its process group.
    """
    values = [*facts, VERSION]
    found = _comparison([0, *(crc32(repr(value).encode()) for _, value in values)], mesh)

    def agreed() -> None:
        status, *digests = found()
        if status:
            raise UsageError(f"{CALL}: the arguments on another rank are wrong; its error says how")
        wrong = [
            f"{name} ({value!r} here)" for (name, value), digest in zip(values, digests, strict=False) if digest < 0
        ]
        if wrong:
            named = ", ".join(wrong)
            raise UsageError(f"{CALL}: the ranks disagree about {named}; all of them must make the same call")

    return agreed


def decline(mesh: Any) -> None:
    """Take part in the comparison with wrong arguments, so that no other rank waits for this one."""
    _comparison([1], mesh)()


def _comparison(digests: list[int], mesh: Any) -> Callable[[], list[int]]:
    """Begin to compare numbers of all ranks; return a function that waits for the numbers: -1 where they differ.

    Hosts compare them, so that no GPU is kept from its products.
    """
    own = torch.tensor(digests + [0] * (NUMBERS - len(digests)), dtype=torch.int64)
    groups = [host_group(mesh.get_group(dimension)) for dimension in range(mesh.ndim)]
    both, first = _begun(own, groups[0])

    def found() -> list[int]:
        answered(first.wait)
        numbers = _marked(both)
        for group in groups[1:]:
            # -1 marks a difference within the first dimension's group. It then differs in the next dimension's groups
            # as well, so after the last dimension all ranks of the mesh have the mark.
            following, begun = _begun(numbers, group)
            answered(begun.wait)
            numbers = _marked(following)
        return list(map(int, numbers.tolist()))

    return found


def _begun(numbers: torch.Tensor, group: Any) -> tuple[torch.Tensor, Any]:
    """Begin one message: the largest values, and the smallest ones with their sign changed."""
    both = torch.stack([numbers, -numbers])
    return both, answered(lambda: dist.all_reduce(both, dist.ReduceOp.MAX, group=group, async_op=True))


def _marked(both: torch.Tensor) -> torch.Tensor:
    return torch.where(both[0] == -both[1], both[0], -1)


def answered(collective: Any) -> Any:
    """Run a collective operation and return its result.

    Raises `DeviceError` if another rank does not take part: it ended, or the time limit of the process group passed.
    """
    try:
        return collective()
    except (RuntimeError, dist.DistError) as error:
        raise DeviceError(
            f"{CALL}: another rank did not take part: it ended, failed, or took longer than its process group allows "
            f"({str(error).splitlines()[0]})"
        ) from error
