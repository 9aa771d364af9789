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

    `a` (m x k), `b` (k x n) and `c` (m x n) are float32 DTensors of one mesh of one or two dimensions, with any
    placements: cut into rows or columns, evenly or not, whole on each rank, or sums over ranks. The result is cut into
    rows, columns or both, as `explain_choice` says. `c` is needed when `beta` is not 0, and is not read when it is.

    Where an operand is cut along k, its panels of 4,096 terms travel while others are multiplied. A rank holds its
    shards, its part of C and two panels of each such operand: 32,768 bytes for each row of its part of C, and each
    column; half as much again where A travels alone, since its columns are copied. `traffic` counts the panels' bytes.

    If one operand travels, each rank begins with its own part of k, so its sums have an order of their own. With
    `reproducible` (as in `gemmlab.gemm`) the result has the same bits on any number of ranks: sums go panel by panel
    from the first term on, and the algorithm `"k"`, which adds the ranks' sums, is not taken.

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
    """This rank's part of C. Both operands come as panels, of which those under way are not the ones multiplied."""
    # k along the first axis: of A that is a view, whose panels are made contiguous only to be sent.
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
    """Return the terms of k of each turn, and the two operands.

    One operand that travels does so in rotation, unless the order of sums must be that of any number of ranks. Where
    both travel, along two dimensions of the mesh, they have to meet in the same order on all ranks.
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
    """Return a kernel of many short blocks, if the library would take one with a long block for each multiprocessor.

    Of those blocks some would begin only after others ended, wherever messages take multiprocessors.
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
    """Each rank multiplies its part of k; the sums of all ranks become rows of C."""
    alpha, beta = factors
    part: Any = multiply(a.to_local(), b.to_local(), alpha=alpha, **options)
    total = _placed(_whole(part, a, b, (SUM,)), (ROWS,))
    return total if added is None else _whole(total.to_local() + beta * added.to_local(), a, b, (ROWS,))


def _group(x: DTensor, way: tuple[str, ...], cut: str) -> Any:
    """Return the ranks that k is cut between; `None` if it is not."""
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
