"""`gemmlab.distributed.gemm`: the product of DTensors."""

from __future__ import annotations

from typing import Any

import torch
from torch.distributed.tensor import DTensor

from gemmlab.api import gemm as multiply
from gemmlab.core.errors import GemmlabError
from gemmlab.distributed.agreement import agree, decline
from gemmlab.distributed.algorithm import explain_choice
from gemmlab.distributed.call_checks import check_part, checked_factors, free_parts
from gemmlab.distributed.candidate import Candidate
from gemmlab.distributed.in_turns import product_in_turns
from gemmlab.distributed.placements import placement_for, words
from gemmlab.distributed.redistribution import moved, placed
from gemmlab.distributed.traffic import Traffic


def gemm(
    a: DTensor, b: DTensor, *, c: DTensor | None = None, alpha: float = 1.0, beta: float = 0.0,
    precision: str = "highest", reproducible: bool = False, traffic: Traffic | None = None,
) -> DTensor:  # fmt: skip
    """Return `alpha * a @ b + beta * c` as a DTensor; all ranks of the mesh call it.

    `a` (m x k), `b` (k x n) and `c` (m x n) are float32 DTensors of one mesh of one or two dimensions. Each may have
    any placement: cut into rows or columns, evenly or not, replicated, or a sum over ranks. a's rows and b's columns
    may be cut otherwise than torch cuts, if the operand is not redistributed, no partial sums are added, and there is
    no `c`. The result is cut into rows, columns or both, or replicated (`Candidate.c` of `explain_choice`). `c` is
    required if `beta` is not 0, and is not read if `beta` is 0; it does not broadcast.

    An operand that is cut along k is sent in panels while earlier panels are multiplied. The memory of a rank contains
    its shards, its part of C, and two panels of each such operand. If one operand is sent, a panel has at most 512 MiB.
    If both are sent, or with `reproducible`, a panel has 4,096 terms of k, and two take 32,768 bytes for each row or
    column of the rank's part of C. GPUs of one host keep the memory of panels for later calls with the same mesh.

    A matrix that is redistributed first takes the memory of the rank's new part, and messages at most 128 MiB. An
    algorithm that adds sums of different ranks (`"k"`) takes, in place of the part of C, that of the rank's sums and a
    half as much, and messages as before. `traffic` counts the bytes that the rank receives, and its buffers.

    With `reproducible` (as in `gemmlab.gemm`) the result has the same bits on any number of ranks: k is always cut into
    the same panels, and no algorithm adds sums of different ranks.

    Raises `ArgumentTypeError` (a TypeError) for other operands, `UsageError` (a ValueError) for shapes and meshes that
    do not fit, an unknown `precision` and a `beta` without `c`, and on every rank when the ranks' calls differ, their
    parts are not all of an operand, or another rank's arguments are wrong; `DeviceError` when a rank does not take
    part.
    """
    try:
        factors = checked_factors(a, b, c, alpha, beta, precision, traffic)
        way = explain_choice(a, b, precision=precision, reproducible=reproducible).best
        for name, x, layout in (("a", a, way.a), ("b", b, way.b)):
            if words(x.placements) != layout:
                check_part(name, x, f"{name} must be redistributed")
            elif way.sums:
                check_part(name, x, "partial sums are added")
    except GemmlabError:
        meshes = [x.device_mesh for x in (a, b) if isinstance(x, DTensor)]
        if meshes and meshes[0].get_coordinate() is not None:
            decline(meshes[0])
        raise

    def agreed() -> None:
        facts = [
            ("the shape of a", tuple(a.shape)), ("the shape of b", tuple(b.shape)), ("c", c is not None),
            ("the placements of a", words(a.placements)), ("the placements of b", words(b.placements)),
            ("the placements of c", () if c is None else words(c.placements)),
            ("alpha", float(alpha)), ("beta", float(beta)), ("precision", precision), ("reproducible", reproducible),
        ]  # fmt: skip
        agree(facts, free_parts(a, b), a.device_mesh)

    # Without messages before the product, a rank multiplies its own terms first.
    early = (words(a.placements), words(b.placements)) != (way.a, way.b) or c is not None or bool(way.sums)
    if early:
        agreed()
    counted = Traffic() if traffic is None else traffic
    left, right = placed(a, way.a, counted), placed(b, way.b, counted)
    added = placed(c, way.c, counted) if c is not None and factors[1] != 0 else None
    options = {"precision": precision, "reproducible": reproducible}
    if way.sums:
        local = _by_parts_of_k(left, right, added, factors, options, way, counted)
    else:
        local = product_in_turns(left, right, added, factors, options, way, counted, None if early else agreed)
    shape = torch.Size((a.shape[0], b.shape[1]))
    return DTensor.from_local(
        local, a.device_mesh, [placement_for(word) for word in way.c], run_check=False, shape=shape,
        stride=(shape[1], 1),
    )  # fmt: skip


def _by_parts_of_k(
    a: DTensor, b: DTensor, added: DTensor | None, factors: tuple[float, float], options: dict[str, Any],
    way: Candidate, traffic: Traffic,
) -> torch.Tensor:  # fmt: skip
    """Return this rank's part of C: each rank multiplies its part of k, and ranks add the partial sums."""
    alpha, beta = factors
    # Nothing else has the partial sums, whose memory is free once they are added.
    total = moved(
        multiply(a.to_local(), b.to_local(), alpha=alpha, **options), (a.shape[0], b.shape[1]), way.sums, way.c,
        a.device_mesh, traffic,
    )  # fmt: skip
    return total if added is None else total.add_(added.to_local(), alpha=beta)
