"""What ranks do in tests of `gemmlab.distributed.gemm`, on CPUs with gloo and on GPUs with NCCL; `play` does all."""

from __future__ import annotations

from itertools import product as all_pairs
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.placement_types import _StridedShard

import gemmlab.distributed
import gemmlab.torch
from gemmlab.core.errors import ArgumentTypeError, UsageError
from gemmlab.distributed import Choice, Traffic, algorithm, explain_choice, mesh_product, panels, redistribution
from gemmlab.distributed.mesh_parts import part_at, parts_of

M, N, K = 37, 29, 53
PANEL = 16
PLACES = {"rows": Shard(0), "columns": Shard(1), "replica": Replicate(), "sum": Partial()}
CASES = 16
"""Cases of `every_algorithm`."""
SMALL = {"PANEL": PANEL, "WORDS": 8 * 24, "DEPTH": 24}
"""Sizes of panels in these tests."""


def kind() -> str:
    return "cuda" if dist.is_initialized() and dist.get_backend() == "nccl" else "cpu"


def line_or_grid(*extents: int) -> Any:
    return init_device_mesh(kind(), extents)


def operands(m: int, n: int, k: int) -> tuple[torch.Tensor, ...]:
    made = torch.Generator().manual_seed(7)
    return tuple(torch.randn(shape, generator=made).to(kind()) for shape in ((m, k), (k, n), (m, n)))


def spread(x: torch.Tensor, mesh: Any, places: tuple[str, ...]) -> Any:
    """A DTensor of `x`; a sum has x on each first rank and zeros on the others."""
    whole = distribute_tensor(x, mesh, [Replicate() if place == "sum" else PLACES[place] for place in places])
    if "sum" not in places:
        return whole
    local = whole.to_local()
    for dimension, place in enumerate(places):
        if place == "sum" and mesh.get_local_rank(dimension) > 0:
            local = torch.zeros_like(local)
    return DTensor.from_local(
        local, mesh, [PLACES[place] for place in places], run_check=False, shape=x.shape, stride=x.stride()
    )


def error_of(
    found: torch.Tensor, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, alpha: float, beta: float
) -> float:
    """The largest error as a part of its bound."""
    left, right, added = a.double(), b.double(), beta * c.double()
    magnitude = abs(alpha) * (left.abs() @ right.abs()) + added.abs()
    bound = (a.shape[1] + 12) * 2.0**-24 * magnitude + 1e-300
    return float(((found.double() - (alpha * (left @ right) + added)).abs() / bound).max()) if found.numel() else 0.0


def each_placement(
    _rank: int, mesh_shape: tuple[int, ...], cases: list[Any], precision: str = "highest"
) -> list[float]:
    mesh = line_or_grid(*mesh_shape)
    found = []
    for (m, n, k), left, right, (alpha, beta) in cases:
        a, b, c = operands(m, n, k)
        got = gemmlab.distributed.gemm(
            spread(a, mesh, left), spread(b, mesh, right), alpha=alpha, beta=beta, precision=precision,
            c=spread(c, mesh, ("replica",) * mesh.ndim) if beta else None,
        )  # fmt: skip
        assert got.shape == (m, n)
        found.append(error_of(got.full_tensor(), a, b, c, alpha, beta))
    return found


SHAPES = [(M, N, K), (3, 2, 5), (1, 1, 1), (8, 8, 8), (0, 4, 3), (4, 0, 3), (4, 3, 0)]


def on_a_line(rank: int, ranks: int) -> list[float]:
    pairs = [((left,), (right,)) for left, right in all_pairs(PLACES, PLACES)]
    cases = [((M, N, K), left, right, (1.0, 0.0)) for left, right in pairs]
    cases += [(shape, *pairs[index % 16], (0.5, -2.0)) for index, shape in enumerate(SHAPES * 3)]
    return each_placement(rank, (ranks,), cases)


def by_terms(rank: int, ranks: int) -> list[float]:
    """Panels of some terms and all lines, also where the model would take panels of lines."""
    found, vars(algorithm)["_hides_one_owner"] = vars(algorithm)["_hides_one_owner"], lambda *_: True
    try:
        sent = (("rows", "rows"), ("columns", "columns"), ("columns", "rows"))
        cases = [((M, N, K), (left,), (right,), (1.0, 0.0)) for left, right in sent]
        cases += [(shape, ("rows",), ("rows",), (0.5, -2.0)) for shape in SHAPES]
        return each_placement(rank, (ranks,), cases, "float32")
    finally:
        vars(algorithm)["_hides_one_owner"] = found


def on_a_grid(rank: int, ranks: int) -> list[float]:
    grid = [(left, right) for left in PLACES for right in PLACES]
    rng = np.random.default_rng(11)
    pairs = [(grid[rng.integers(16)], grid[rng.integers(16)]) for _ in range(12)] + [(("rows", "columns"),) * 2]
    cases = [((M, N, K), left, right, (1.0, 0.0)) for left, right in pairs]
    cases += [(shape, *pairs[index % 13], (0.5, -2.0)) for index, shape in enumerate(SHAPES)]
    return each_placement(rank, (2, 2) if ranks == 4 else (1, ranks), cases)


def every_algorithm(_rank: int, ranks: int) -> list[tuple[str, float, float]]:
    """Random placements on random meshes, by each algorithm that is considered: its name, the error, and the bytes that
    this rank received as a part of the formula.
    """
    rng = np.random.default_rng(ranks)
    # Messages of few elements, so that ranks exchange several in turn.
    changed, vars(redistribution)["WORDS"] = vars(redistribution)["WORDS"], 50
    found = list[tuple[str, float, float]]()
    meshes = [line_or_grid(*extents) for extents in {(ranks,), (1, ranks), (ranks, 1), (2, max(1, ranks // 2))}
              if np.prod(extents) == ranks]  # fmt: skip
    try:
        for number in range(CASES):
            mesh = meshes[rng.integers(len(meshes))]
            left, right = (tuple(rng.choice(list(PLACES), mesh.ndim)) for _ in "ab")
            m, n, k = SHAPES[number] if number < len(SHAPES) else map(int, rng.integers(1, 60, 3))
            a, b, c = operands(m, n, k)
            one, two = spread(a, mesh, left), spread(b, mesh, right)
            for way in explain_choice(one, two).considered:
                vars(mesh_product)["explain_choice"] = lambda *_, way=way, **__: Choice(way, (way,))
                counted, beta = Traffic(), float(number % 2)
                got = gemmlab.distributed.gemm(one, two, traffic=counted)
                formula = way.bytes_before + way.bytes_meanwhile
                received = counted.received / formula if formula else float(counted.received > 0)
                error = error_of(got.full_tensor(), a, b, c, 1.0, 0.0)
                if beta:
                    added = spread(c, mesh, tuple(rng.choice(list(PLACES), mesh.ndim)))
                    got = gemmlab.distributed.gemm(one, two, c=added, alpha=0.5, beta=beta)
                    error = max(error, error_of(got.full_tensor(), a, b, c, 0.5, beta))
                found.append((way.algorithm, error, received))
    finally:
        vars(redistribution)["WORDS"], vars(mesh_product)["explain_choice"] = changed, explain_choice
    return found


def another_order(rank: int, ranks: int) -> list[float]:
    """Meshes whose ranks are in another order than torch's groups, or that do not contain all processes."""
    order = {3: [2, 0], 4: [3, 1, 0, 2]}[ranks]
    mesh, extents = DeviceMesh(kind(), torch.tensor(order).view(-1, 2)), (ranks // 2, 2)
    a, b, _ = operands(15, 7, 13)
    if rank not in order:
        outside = DTensor.from_local(a, mesh, [Replicate()] * 2, run_check=False)
        with pytest.raises(UsageError, match="the mesh does not contain this process"):
            gemmlab.distributed.gemm(outside, outside.t())
        return [0.0]

    def part(x: torch.Tensor, layout: tuple[str, ...]) -> torch.Tensor:
        (top, bottom), (left, right) = part_at(parts_of(x.shape, layout, extents), mesh.get_coordinate())
        return x[top:bottom, left:right].contiguous()

    found = []
    for left, right in all_pairs([("rows",) * 2, ("columns",) * 2], repeat=2):
        one, two = (
            DTensor.from_local(
                part(x, layout), mesh, [PLACES[word] for word in layout], run_check=False, shape=x.shape,
                stride=x.stride(),
            )
            for x, layout in ((a, left), (b, right))
        )  # fmt: skip
        got = gemmlab.distributed.gemm(one, two).to_local()
        way = gemmlab.distributed.explain_choice(one, two).best
        expected = part((a.double() @ b.double()).float(), way.c)
        found.append(float((got - expected).abs().max()) if expected.numel() else 0.0)
    return found


def other_placements(_rank: int, ranks: int) -> list[float]:
    """Operands that only torch can redistribute: a cut with strides, as of FSDP with tensor parallelism; an average."""
    a, b, c = operands(16, 8, 12)
    mesh = line_or_grid(2, 2) if ranks == 4 else line_or_grid(ranks)
    if ranks == 4:
        dp, tp = mesh.get_coordinate()
        part = b.chunk(2, 1)[tp].chunk(2, 1)[dp]
        places = [_StridedShard(1, split_factor=2), Shard(1)]
        left = spread(a, mesh, ("rows", "replica"))
        right = DTensor.from_local(part, mesh, places, run_check=False, shape=b.shape, stride=b.stride())
    else:
        left = DTensor.from_local(a, mesh, [Partial("avg")], run_check=False)
        right = spread(b, mesh, ("replica",))
    return [error_of(gemmlab.distributed.gemm(left, right).full_tensor(), a, b, torch.zeros_like(c), 1.0, 0.0)]


def bits(_rank: int, ranks: int) -> Any:
    place = {1: ("rows",), 2: ("rows",), 3: ("columns",), 4: ("rows", "columns")}[ranks]
    mesh = line_or_grid(*((2, 2) if ranks == 4 else (ranks,)))
    a, b, _ = operands(M, N, K)
    return (
        gemmlab.distributed.gemm(spread(a, mesh, place), spread(b, mesh, place), reproducible=True)
        .full_tensor()
        .cpu()
        .numpy()
    )


def traffic(_rank: int, ranks: int) -> Any:
    place = {2: ("rows",), 3: ("columns",), 4: ("rows", "columns")}[ranks]
    mesh = line_or_grid(*((2, 2) if ranks == 4 else (ranks,)))
    extents = {2: (640, 64, 64), 3: (64, 640, 64), 4: (96, 64, 256)}[ranks]
    a, b = (spread(x, mesh, place) for x in operands(*extents)[:2])
    found = []
    for reproducible in (True, False):
        counted = Traffic()
        gemmlab.distributed.gemm(a, b, traffic=counted, reproducible=reproducible)
        found.append((gemmlab.distributed.explain_choice(a, b, reproducible=reproducible).best, counted))
    return found


def special_values(_rank: int, ranks: int) -> Any:
    mesh = line_or_grid(ranks)
    a, b = with_special_values()
    return gemmlab.distributed.gemm(spread(a, mesh, ("rows",)), spread(b, mesh, ("rows",))).full_tensor().cpu().numpy()


def with_special_values() -> tuple[torch.Tensor, torch.Tensor]:
    a, b, _ = operands(8, 8, 8)
    a[5, 3], b[2, 1] = float("nan"), float("inf")
    return a, b


DISAGREED = ("the shape of a", "alpha", "precision", "the placements of c")
"""What the errors of `disagreement` name."""


def disagreement(rank: int, ranks: int) -> list[str]:
    mesh = line_or_grid(ranks)
    texts = []
    for rows, alpha, precision in (
        (8 + rank, 1.0, "highest"),
        (8, 1.0 + rank, "highest"),
        (8, 1.0, ("highest", "tf32")[rank]),
    ):
        a, b = (
            distribute_tensor(torch.ones(shape, device=kind()), mesh, [Replicate()], src_data_rank=None)
            for shape in ((rows, 6), (6, 4))
        )
        with pytest.raises(UsageError) as caught:
            gemmlab.distributed.gemm(a, b, alpha=alpha, precision=precision)
        texts.append(str(caught.value))
    # Where C lies is compared before the first message about it.
    places = (Shard(0), Shard(0), Shard(rank))
    a, b, c = (
        distribute_tensor(torch.ones((8, 8), device=kind()), mesh, [place], src_data_rank=None) for place in places
    )
    with pytest.raises(UsageError) as caught:
        gemmlab.distributed.gemm(a, b, c=c, beta=1.0)
    return [*texts, str(caught.value)]


def wrong_on_one_rank(rank: int, ranks: int) -> list[str]:
    """The errors of calls that are wrong on rank 0 alone; each next call works again."""
    mesh, texts = line_or_grid(ranks), []
    a, b, c = operands(8, 8, 8)
    left, right = spread(a, mesh, ("rows",)), spread(b, mesh, ("rows",))
    learns = spread(a, mesh, ("rows",)).requires_grad_()
    short = DTensor.from_local(
        right.to_local()[:3], mesh, [Shard(0)], run_check=False, shape=b.shape, stride=b.stride()
    )  # fmt: skip
    # Otherwise than torch a matrix may be cut along its free axis, but not if it is redistributed or C is added.
    narrow, low = (
        DTensor.from_local(part, mesh, [Shard(axis)], run_check=False, shape=b.shape, stride=b.stride())
        for axis, part in ((1, spread(b, mesh, ("columns",)).to_local()[:, :3]), (0, left.to_local()[:3]))
    )
    alone: list[dict[str, Any]] = [
        {"precision": "foo"}, {"beta": 1.0}, {"traffic": 3}, {"alpha": "x"},
        {"b": spread(operands(8, 8, 5)[1], mesh, ("rows",))}, {"b": b}, {"a": learns}, {"b": short},
        {"b": narrow}, {"a": low, "c": spread(c, mesh, ("rows",)), "beta": 1.0},
    ]  # fmt: skip
    for wrong in alone:
        how = {"a": left, "b": right} | (wrong if rank == 0 else {})
        with pytest.raises((UsageError, ArgumentTypeError)) as caught:
            gemmlab.distributed.gemm(**how)
        texts.append(str(caught.value))
        got = gemmlab.distributed.gemm(left, right).full_tensor()
        assert error_of(got, a, b, torch.zeros_like(c), 1.0, 0.0) <= 1.0
    with pytest.raises(ArgumentTypeError, match=r"a is a DTensor; gemmlab\.distributed\.gemm"):
        gemmlab.gemm(left, right)
    with pytest.raises(ArgumentTypeError, match="a is tuple; it must be a DTensor"):
        gemmlab.distributed.explain_choice((3, 4), (4, 5))
    stacks, other = (
        spread(torch.ones((2, 8, 8), device=kind()), mesh, ("replica",)),
        spread(b, line_or_grid(1, ranks), ("rows", "rows")),
    )
    cube = spread(a, line_or_grid(1, 1, ranks), ("rows",) * 3)
    for one, two, named in (
        (stacks, b, "a has 3 dimensions"), (left, alone[4]["b"], "k differs"), (left, other, "another mesh"),
        (cube, cube, "the mesh has 3 dimensions"),
    ):  # fmt: skip
        with pytest.raises(UsageError, match=named):
            gemmlab.distributed.explain_choice(one, two)
    return texts


def other_cuts(rank: int, ranks: int) -> tuple[list[float], list[str]]:
    """Parts that torch would not have cut so: the errors of products that take them, and the texts of the others."""
    line, grid = line_or_grid(ranks), line_or_grid(2, 2)
    a, b, _ = operands(30, 20, 40)
    i, j = rank // 2, rank % 2
    left, right = (spread(x, grid, ("rows", "columns")) for x in (a, b))
    left_cut, right_cut = slice(20 * j, 20 * j + 20), slice(20 * i, 20 * i + 20)

    def cut(x: torch.Tensor, mesh: Any, places: tuple[str, ...], rows: slice, columns: slice) -> Any:
        return DTensor.from_local(
            x[rows, columns].contiguous(), mesh, [PLACES[place] for place in places], run_check=False, shape=x.shape,
            stride=x.stride(),
        )  # fmt: skip

    everything, uneven = slice(None), [slice(0, 10), slice(10, 30)]
    of_four = [slice(0, 10), slice(10, 15), slice(15, 15), slice(15, 30)][rank]
    on_line = cut(a, line, ("rows",), of_four, everything)
    on_grid = cut(a, grid, ("rows", "columns"), uneven[i], left_cut)
    narrow = cut(b, grid, ("rows", "columns"), right_cut, [slice(0, 3), slice(3, 20)][j])
    taken = [
        (on_line, spread(b, line, ("rows",)), of_four, everything),
        (on_grid, right, uneven[i], slice(10 * j, 10 * j + 10)),
        (on_grid, narrow, uneven[i], [slice(0, 3), slice(3, 20)][j]),
    ]  # fmt: skip
    errors = []
    for one, two, rows, columns in taken:
        got = gemmlab.distributed.gemm(one, two).to_local()
        errors.append(error_of(got, a[rows], b[:, columns], torch.zeros_like(got), 1.0, 0.0))

    short = cut(a, grid, ("rows", "columns"), slice(15 * i, 24 if rank == 3 else 15 * i + 15), left_cut)
    thin = cut(b, grid, ("rows", "columns"), right_cut, slice(10 * j, 9 if rank == 0 else 10 * j + 10))
    lacking = cut(a, line, ("rows",), slice(8 * rank, 19 if rank == 2 else 8 * rank + 8), everything)
    deep, deep_b, _ = operands(30, 20, 4000)
    summed = cut(deep, grid, ("columns", "rows"), uneven[j], slice(2000 * i, 2000 * i + 2000))
    moved = cut(a, grid, ("columns", "rows"), uneven[j], slice(20 * i, 20 * i + 20))
    refused: list[tuple[Any, Any, dict[str, Any]]] = [
        (short, right, {}), (short, right, {"reproducible": True}), (left, thin, {}),
        (lacking, spread(b, line, ("replica",)), {}), (summed, spread(deep_b, grid, ("rows", "replica")), {}),
        (moved, right, {}), (on_grid, right, {"c": spread(operands(30, 20, 40)[2], grid, ("rows", "columns"))}),
    ]  # fmt: skip
    texts = []
    for one, two, how in refused:
        with pytest.raises(UsageError) as caught:
            gemmlab.distributed.gemm(one, two, **how)
        texts.append(str(caught.value))
    return errors, texts


def by_operator(_rank: int, ranks: int) -> list[float]:
    mesh = line_or_grid(ranks)
    a, b, c = operands(M, N, K)
    nothing = torch.zeros_like(c)
    found = []
    for left, right in all_pairs(("rows", "columns", "replica"), repeat=2):
        got = gemmlab.torch.gemm(spread(a, mesh, (left,)), spread(b, mesh, (right,)))
        found.append(error_of(got.full_tensor(), a, b, nothing, 1.0, 0.0))
    stored = spread(a.t().contiguous(), mesh, ("columns",))
    turned = gemmlab.torch.gemm(stored, spread(b, mesh, ("replica",)), trans_a=True)
    found.append(error_of(turned.full_tensor(), a, b, nothing, 1.0, 0.0))
    left, right, added = spread(a, mesh, ("rows",)), spread(b, mesh, ("columns",)), spread(c, mesh, ("rows",))
    found.append(error_of(gemmlab.torch.gemm(left, right, added, beta=2.0).full_tensor(), a, b, c, 1.0, 2.0))
    return found


SCENES: dict[int, list[Any]] = {
    1: [bits],
    2: [every_algorithm, other_placements, on_a_line, by_terms, bits, traffic, special_values, disagreement,
        wrong_on_one_rank, by_operator],
    3: [every_algorithm, another_order, on_a_line, by_terms, on_a_grid, bits, traffic],
    4: [every_algorithm, another_order, other_placements, on_a_grid, bits, traffic, other_cuts],
}  # fmt: skip


def play(rank: int, ranks: int) -> dict[str, Any]:
    """All scenes of a number of ranks in one set of processes, with small panels."""
    vars(panels).update(SMALL)
    return {scene.__name__: scene(rank, ranks) for scene in SCENES[ranks]}
