"""All ranks must make the same call: shapes, placements, numbers, precision and version are compared first."""

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
    """Compare what the ranks of a mesh say of their calls: (name, value) pairs, the same names on each.

    Raises `UsageError` on every rank when they differ, and names what does; `DeviceError` when a rank does not answer
    within the time limit of its process group.
    """
    values = [*facts, VERSION]
    own = torch.tensor([crc32(repr(value).encode()) for _, value in values], dtype=torch.int64, device=mesh.device_type)
    for dimension in range(mesh.ndim):
        group = mesh.get_group(dimension)
        least, most = own.clone(), own.clone()
        answered(lambda: dist.all_reduce(least, dist.ReduceOp.MIN, group=group))  # noqa: B023 - called at once
        answered(lambda: dist.all_reduce(most, dist.ReduceOp.MAX, group=group))  # noqa: B023 - called at once
        # Ranks of one line of the mesh know first: the next dimension tells the others.
        own = torch.where(least == most, own, torch.full_like(own, -1))
    wrong = [
        f"{name} ({value!r} here)" for (name, value), digest in zip(values, own.tolist(), strict=True) if digest < 0
    ]
    if wrong:
        raise UsageError(f"{CALL}: the ranks disagree about {', '.join(wrong)}; all of them must make the same call")


def answered(collective: Any) -> Any:
    """Run a collective. Raises `DeviceError` when the others do not take part: a rank ended, or its time is over."""
    try:
        return collective()
    except (RuntimeError, dist.DistError) as error:
        raise DeviceError(
            f"{CALL}: another rank did not take part: it ended, failed, or took longer than its process group allows "
            f"({str(error).splitlines()[0]})"
        ) from error


def bits(value: float) -> str:
    """Return a number so that NaN equals itself and 0 differs from -0."""
    return struct.pack("<d", value).hex()
