"""Comparison of the ranks' arguments before a distributed product: all ranks must make the same call."""

from __future__ import annotations

import re
from collections.abc import Sequence
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
"""Length of the message of a rank, in int64 numbers: a status (0, or 1 from `decline`), digests, and zeros."""
CAUSE = re.compile(r"(?:\[\S+:\d+\] )?(.+?)(?:\. |$)", re.MULTILINE)
"""What torch's error says first. gloo writes a place in its source before that, and general advice after it."""


def agree(facts: Sequence[tuple[str, object]], mesh: Any) -> None:
    """Compare the (name, value) pairs `facts` of all ranks of a mesh; every rank passes the same names in one order.

    Raises `UsageError` on every rank if any value differs, with the names of these values, or if a rank has called
    `decline`. This function and `decline` raise `DeviceError` if a rank does not answer within the time limit of its
    process group.
    """
    values = [*facts, VERSION]
    status, *digests = _compared([0, *(crc32(repr(value).encode()) for _, value in values)], mesh)
    if status:
        raise UsageError(f"{CALL}: the arguments on another rank are wrong; its error says how")
    wrong = [f"{name} ({value!r} here)" for (name, value), digest in zip(values, digests, strict=False) if digest < 0]
    if wrong:
        named = ", ".join(wrong)
        raise UsageError(f"{CALL}: the ranks disagree about {named}; all of them must make the same call")


def decline(mesh: Any) -> None:
    """Take part in the other ranks' `agree` for a rank with wrong arguments, so that they raise and do not wait."""
    _compared([1], mesh)


def _compared(digests: list[int], mesh: Any) -> list[int]:
    """Return numbers that all ranks have compared: -1 where they differ.

    Hosts compare them, so that no GPU is kept from its products.
    """
    numbers = torch.tensor(digests + [0] * (NUMBERS - len(digests)), dtype=torch.int64)
    for dimension in range(mesh.ndim):
        group = host_group(mesh.get_group(dimension))
        # One message: the largest values, and the smallest ones with their sign changed.
        both = torch.stack([numbers, -numbers])
        answered(lambda: dist.all_reduce(both, dist.ReduceOp.MAX, group=group))  # noqa: B023
        # -1 marks a difference within this dimension's group. It then differs in the next dimension's groups as well,
        # so after the last dimension all ranks of the mesh have the mark.
        numbers = torch.where(both[0] == -both[1], both[0], -1)
    return list(map(int, numbers.tolist()))


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
