"""`gemmlab.distributed.gemm`: the product of DTensors."""

from __future__ import annotations

from typing import Any

import torch
from torch.distributed.tensor import DTensor

from gemmlab.api import gemm as multiply
from gemmlab.core.errors import GemmlabError
from gemmlab.distributed.agreement import agree, answered, decline
from gemmlab.distributed.algorithm import explain_choice
from gemmlab.distributed.call_checks import checked_factors
from gemmlab.distributed.in_turns import product_in_turns
from gemmlab.distributed.placements import ROWS, SUM, placement_for, words
from gemmlab.distributed.traffic import Traffic


def gemm(
    a: DTensor, b: DTensor, *, c: DTensor | None = None, alpha: float = 1.0, beta: float = 0.0,
    precision: str = "highest", reproducible: bool = False, traffic: Traffic | None = None,
) -> DTensor:  # fmt: skip
    """Return `alpha * a @ b + beta * c` as a DTensor; all ranks of the mesh call it.

    `a` (m x k), `b` (k x n) and `c` (m x n) are float32 DTensors of one mesh of one or two dimensions. Each may have
    any placement: cut into rows or columns, evenly or not, replicated, or a sum over ranks. The result is cut into
    rows, columns or both, or replicated (`Candidate.c` of `explain_choice`). `c` is required if `beta` is not 0, and is
    not read if `beta` is 0.

    An operand that is cut along k is sent in panels while earlier panels are multiplied. The memory of a rank contains
    its shards, its part of C, and two panels of each such operand. If one operand is sent, a panel has at most 512 MiB.
    If both are sent, or with `reproducible`, a panel has 4,096 terms of k, and two take 32,768 bytes for each row or
    column of the rank's part of C. `traffic` counts the bytes of panels. GPUs of one host keep the memory of panels for
    later calls with the same mesh.

    With `reproducible` (as in `gemmlab.gemm`) the result has the same bits on any number of ranks: k is always cut into
    the same panels, and the algorithm `"k"`, which adds sums of different ranks, is not taken.

    Raises `ArgumentTypeError` (a TypeError) for other operands, `UsageError` (a ValueError) for shapes and meshes that
    do not fit, an unknown `precision` and a `beta` without `c`, and on every rank when the ranks' calls differ or
    another rank's arguments are wrong; `DeviceError` when a rank does not take part.
    """
    try:
        factors = checked_factors(a, b, c, alpha, beta, precision, traffic)
    except GemmlabError:
        meshes = [x.device_mesh for x in (a, b) if isinstance(x, DTensor)]
        if meshes:
            decline(meshes[0])
        raise

    def agreed() -> None:
        facts = [
            ("the shape of a", tuple(a.shape)), ("the shape of b", tuple(b.shape)), ("c", c is not None),
            ("the placements of a", words(a.placements)), ("the placements of b", words(b.placements)),
            ("the placements of c", () if c is None else words(c.placements)),
            ("alpha", float(alpha)), ("beta", float(beta)), ("precision", precision), ("reproducible", reproducible),
        ]  # fmt: skip
        agree(facts, a.device_mesh)

    way = explain_choice(a, b, precision=precision, reproducible=reproducible).best
    # Without messages before the product, a rank multiplies its own terms first.
    early = (words(a.placements), words(b.placements)) != (way.a, way.b) or c is not None or way.algorithm == "k"
    if early:
        agreed()
    left, right = _placed(a, way.a), _placed(b, way.b)
    added = _placed(c, way.c) if c is not None and factors[1] != 0 else None
    options = {"precision": precision, "reproducible": reproducible}
    if way.algorithm == "k":
        return _by_parts_of_k(left, right, added, factors, options)
    local = product_in_turns(left, right, added, factors, options, way, traffic or Traffic(), None if early else agreed)
    return _whole(local, a, b, way.c)


def _by_parts_of_k(
    a: DTensor, b: DTensor, added: DTensor | None, factors: tuple[float, float], options: dict[str, Any]
) -> DTensor:
    """Return C cut into rows: each rank multiplies its part of k, and a reduce-scatter adds the partial sums."""
    alpha, beta = factors
    part: Any = multiply(a.to_local(), b.to_local(), alpha=alpha, **options)
    total = _placed(_whole(part, a, b, (SUM,)), (ROWS,))
    return total if added is None else _whole(total.to_local() + beta * added.to_local(), a, b, (ROWS,))


def _placed(x: DTensor, way: tuple[str, ...]) -> DTensor:
    if words(x.placements) == way:
        return x
    found: DTensor = answered(lambda: x.redistribute(x.device_mesh, [placement_for(word) for word in way]))
    return found


def _whole(local: torch.Tensor, a: DTensor, b: DTensor, way: tuple[str, ...]) -> DTensor:
    shape = torch.Size((a.shape[0], b.shape[1]))
    return DTensor.from_local(
        local, a.device_mesh, [placement_for(word) for word in way], run_check=False, shape=shape, stride=(shape[1], 1)
    )  # fmt: skip
