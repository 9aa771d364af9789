"""`gemmlab.distributed.gemm`: the product of DTensors."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor

from gemmlab.api import gemm as multiply
from gemmlab.choices import explain_choice as library_choice
from gemmlab.core.argument_checks import float32_scalar
from gemmlab.core.errors import ArgumentTypeError, UsageError
from gemmlab.core.precision import PRECISIONS
from gemmlab.dispatch.precision_rule import HIGHEST, precision_for
from gemmlab.distributed.agreement import CALL, answered, bits, require_agreement
from gemmlab.distributed.algorithm import Candidate, explain_choice
from gemmlab.distributed.panels import Panels, Source, Whole, panels_of
from gemmlab.distributed.placements import COLUMNS, ROWS, SUM, placement_for, words
from gemmlab.distributed.rotation import Rotation, Turn, turns_of
from gemmlab.distributed.traffic import Traffic

MOST_DIMENSIONS = 2


def gemm(
    a: DTensor, b: DTensor, *, c: DTensor | None = None, alpha: float = 1.0, beta: float = 0.0,
    precision: str = "highest", reproducible: bool = False, traffic: Traffic | None = None,
) -> DTensor:  # fmt: skip
    """Return `alpha * a @ b + beta * c` as a DTensor; all ranks of the mesh call it.

    `a` (m x k), `b` (k x n) and `c` (m x n) are float32 DTensors of one mesh of one or two dimensions. Each may have
    any placement: cut into rows or columns, evenly or not, replicated, or a sum over ranks. The result is cut into
    rows, columns or both, or replicated (`Candidate.c` of `explain_choice`). `c` is required if `beta` is not 0, and is
    not read if `beta` is 0.

    An operand that is cut along k is sent in panels of 4,096 terms while earlier panels are multiplied. The memory of a
    rank contains its shards, its part of C, and two panels of each such operand. Two panels of A take 32,768 bytes a
    row of the rank's part of C, two panels of B as many bytes a column. If only A is sent, its panels take half as much
    again, because its columns are copied first. `traffic` counts the bytes of panels.

    If only one operand is sent, each rank begins with its own part of k, so the order of its sums differs from that of
    other ranks. With `reproducible` (as in `gemmlab.gemm`) the result has the same bits on any number of ranks: sums
    run from the first panel to the last, and the algorithm `"k"`, which adds sums of different ranks, is not taken.

    Raises `ArgumentTypeError` (a TypeError) for other operands, `UsageError` (a ValueError) for shapes and meshes that
    do not fit, and on every rank when the ranks' calls differ; `DeviceError` when a rank does not take part.
    """
    _check(a, b, c, beta)
    precision_for(precision, PRECISIONS)
    factors = float32_scalar(alpha), float32_scalar(beta)
    require_agreement(
        [
            ("the shape of a", tuple(a.shape)), ("the shape of b", tuple(b.shape)), ("c", c is not None),
            ("the placements of a", words(a.placements)), ("the placements of b", words(b.placements)),
            ("alpha", bits(alpha)), ("beta", bits(beta)), ("precision", precision), ("reproducible", reproducible),
        ],
        a.device_mesh,
    )  # fmt: skip
    way = explain_choice(a, b, precision=precision, reproducible=reproducible).best
    left, right = _placed(a, way.a), _placed(b, way.b)
    added = _placed(c, way.c) if c is not None and factors[1] != 0 else None
    options = {"precision": precision, "reproducible": reproducible}
    if way.algorithm == "k":
        return _by_parts_of_k(left, right, added, factors, options)
    local = _by_panels(left, right, added, factors, options, way, traffic or Traffic())
    return _whole(local, a, b, way.c)


def _by_panels(
    a: DTensor, b: DTensor, added: DTensor | None, factors: tuple[float, float], options: dict[str, Any],
    way: Candidate, traffic: Traffic,
) -> torch.Tensor:  # fmt: skip
    """Return this rank's part of C, computed in turns: each multiplies a panel of A by one of B, along k. While the
    panels of one turn are multiplied, those of the next are sent.
    """
    # Both operands have k as their first axis. For A this is a transposed view; only panels that are sent are copied.
    left, right = a.to_local().t(), b.to_local()
    alpha, beta = factors
    c = None if added is None else added.to_local()
    result = left.new_empty((left.shape[1], right.shape[1]))
    if a.shape[1] == 0 or alpha == 0.0:
        return result.zero_() if c is None else beta * c
    groups = _group(a, way.a, COLUMNS), _group(b, way.b, ROWS)
    terms, sources = _sources((left, right), groups, a.shape[1], options["reproducible"], traffic)
    for source in sources:
        answered(lambda source=source: source.start(0))
    before = False
    for turn, some in enumerate(terms):
        one, two = answered(lambda turn=turn: [source.take(turn) for source in sources])
        if turn + 1 < len(terms):
            for source in sources:
                answered(lambda source=source, turn=turn: source.start(turn + 1))
        if not some:
            continue
        if not before and groups != (None, None):
            options = options | _beside_messages(one.t(), two, options)
        onto, factor = (result, 1.0) if before else (c, beta)
        multiply(one.t(), two, c=onto, alpha=alpha, beta=0.0 if onto is None else factor, out=result, **options)
        before = True
    return result


def _sources(
    local: tuple[torch.Tensor, torch.Tensor], groups: tuple[Any, Any], depth: int, reproducible: bool, traffic: Traffic
) -> tuple[list[range], list[Source]]:
    """Return the terms of k of each turn, and the sources of the two operands' panels.

    If one operand is sent and `reproducible` is false, its panels rotate (`Rotation`). If both are sent, along two
    dimensions of the mesh, all ranks take their panels in the same order (`Panels`).
    """
    travels = [group for group in groups if group is not None]
    turns: list[Turn] = []
    if len(travels) == 1 and not reproducible:
        turns = turns_of(depth, dist.get_world_size(travels[0]), dist.get_rank(travels[0]))
    terms = [turn.terms for turn in turns] or panels_of(depth)

    def source(each: torch.Tensor, group: Any) -> Source:
        if group is None:
            return Whole(each, terms)
        return Rotation(each, turns, group, traffic) if turns else Panels(each, depth, group, traffic)

    return terms, [source(each, group) for each, group in zip(local, groups, strict=True)]


def _beside_messages(left: torch.Tensor, right: torch.Tensor, options: dict[str, Any]) -> dict[str, Any]:
    """Return options that choose a kernel of many short blocks, if the library would take a persistent one; else none.

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


def _by_parts_of_k(
    a: DTensor, b: DTensor, added: DTensor | None, factors: tuple[float, float], options: dict[str, Any]
) -> DTensor:
    """Return C cut into rows: each rank multiplies its part of k, and a reduce-scatter adds the partial sums."""
    alpha, beta = factors
    part: Any = multiply(a.to_local(), b.to_local(), alpha=alpha, **options)
    total = _placed(_whole(part, a, b, (SUM,)), (ROWS,))
    return total if added is None else _whole(total.to_local() + beta * added.to_local(), a, b, (ROWS,))


def _group(x: DTensor, way: tuple[str, ...], cut: str) -> Any:
    """Return the process group among whose ranks k of an operand is cut; `None` if k is not cut."""
    mesh = x.device_mesh
    return next(
        (mesh.get_group(dimension) for dimension, word in enumerate(way) if word == cut and mesh.size(dimension) > 1),
        None,
    )


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


def _check(a: DTensor, b: DTensor, c: DTensor | None, beta: float) -> None:
    for name, x in (("a", a), ("b", b), *((("c", c),) if c is not None else ())):
        if not isinstance(x, DTensor):
            raise ArgumentTypeError(f"{CALL}: {name} is {type(x).__qualname__}; it must be a DTensor")
        if x.dtype != torch.float32:
            raise ArgumentTypeError(f"{CALL}: {name} is {x.dtype}; it must be torch.float32")
        if x.ndim != 2:
            raise UsageError(f"{CALL}: {name} has {x.ndim} dimensions; it must have 2")
        if x.device_mesh != a.device_mesh:
            raise UsageError(f"{CALL}: {name} lies on another mesh than a")
    if a.device_mesh.ndim > MOST_DIMENSIONS:
        raise UsageError(f"{CALL}: the mesh has {a.device_mesh.ndim} dimensions; it may have 1 or 2")
    if a.shape[1] != b.shape[0]:
        raise UsageError(f"{CALL}: a is {_shape(a)} and b is {_shape(b)}: k differs")
    if c is None and beta != 0:
        raise UsageError(f"{CALL}: beta is {beta!r}, so c is needed")
    if c is not None and tuple(c.shape) != (a.shape[0], b.shape[1]):
        raise UsageError(f"{CALL}: c is {_shape(c)}; the product is {a.shape[0]}x{b.shape[1]}")


def _shape(x: DTensor) -> str:
    return "x".join(str(extent) for extent in x.shape)
