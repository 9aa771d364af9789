"""Comparison of the ranks' arguments before a distributed product: all ranks must make the same call."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any
from zlib import crc32

import torch
import torch.distributed as dist

from gemmlab.core.errors import DeviceError, UsageError
from gemmlab.core.version import __version__

CALL = "gemmlab.distributed.gemm"
VERSION = ("version of gemmlab", __version__)


def require_agreement(facts: Sequence[tuple[str, object]], mesh: Any) -> None:
    """Compare the (name, value) pairs `facts` of all ranks of a mesh; every rank passes the same names in one order.

    Raises `UsageError` on every rank if any value differs, with the names of these values; `DeviceError` if a rank does
    not answer within the time limit of its process group.
    """
    values = [*facts, VERSION]
    own = torch.tensor([crc32(repr(value).encode()) for _, value in values], dtype=torch.int64, device=mesh.device_type)
    for dimension in range(mesh.ndim):
        group = mesh.get_group(dimension)
        least, most = own.clone(), own.clone()
        answered(lambda: dist.all_reduce(least, dist.ReduceOp.MIN, group=group))  # noqa: B023 - called at once
        answered(lambda: dist.all_reduce(most, dist.ReduceOp.MAX, group=group))  # noqa: B023 - called at once
        # -1 marks a difference within this dimension's group. It then differs in the next dimension's groups as well,
        # so after the last dimension all ranks of the mesh have the mark.
        own = torch.where(least == most, own, torch.full_like(own, -1))
    wrong = [
        f"{name} ({value!r} here)" for (name, value), digest in zip(values, own.tolist(), strict=True) if digest < 0
    ]
    if wrong:
        raise UsageError(f"{CALL}: the ranks disagree about {', '.join(wrong)}; all of them must make the same call")


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


def bits(value: float) -> str:
    """Return the bits of a float64 in hexadecimal: as text, NaN equals itself and 0 differs from -0."""
    return struct.pack("<d", value).hex()
