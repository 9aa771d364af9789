"""Comparison of the ranks' arguments before a distributed product: all ranks must make the same call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any
from zlib import crc32

import torch
import torch.distributed as dist

from gemmlab.core.errors import DeviceError, UsageError
from gemmlab.core.version import __version__

CALL = "gemmlab.distributed.gemm"
VERSION = ("version of gemmlab", __version__)
NUMBERS = 16
"""Numbers that a rank sends, with or without arguments to compare: a status, digests, and zeros."""
_streams = dict[int, Any]()


def begin_agreement(facts: Sequence[tuple[str, object]], mesh: Any) -> Callable[[], None]:
    """Begin to compare the (name, value) pairs `facts` of all ranks of a mesh; every rank passes the same names in one
    order. Return a function that waits for the answer.

    The function raises `UsageError` on every rank if any value differs, with the names of these values, or if a rank
    has called `decline`. Both raise `DeviceError` if a rank does not answer within the time limit of its process group.
    On a GPU nothing waits for work of the current stream.
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
    """Begin to compare numbers of all ranks; return a function that waits for the numbers: -1 where they differ."""
    digests = digests + [0] * (NUMBERS - len(digests))
    stream = _stream(mesh)
    with torch.cuda.stream(stream) if stream else nullcontext():
        own = torch.tensor(digests, dtype=torch.int64, device=mesh.device_type)
        for dimension in range(mesh.ndim):
            # One message: the largest values, and the smallest ones with their sign changed.
            both = torch.stack([own, -own])
            answered(lambda: dist.all_reduce(both, dist.ReduceOp.MAX, group=mesh.get_group(dimension)))  # noqa: B023
            # -1 marks a difference within this dimension's group. It then differs in the next dimension's groups as
            # well, so after the last dimension all ranks of the mesh have the mark.
            own = torch.where(both[0] == -both[1], own, -1)

    def found() -> list[int]:
        with torch.cuda.stream(stream) if stream else nullcontext():
            numbers: list[int] = answered(own.tolist)
        return numbers

    return found


def _stream(mesh: Any) -> Any:
    """Return the stream of this process's GPU for these messages; `None` if the mesh is one of CPUs."""
    if mesh.device_type != "cuda":
        return None
    device = torch.cuda.current_device()
    if device not in _streams:
        _streams[device] = torch.cuda.Stream(device, priority=-1)
    return _streams[device]


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
