"""The kernel of a product in pieces on a GPU, and its requirements on pieces. It is the kernel of the whole product,
wherever that kernel gives the same bits in pieces.

It does so if the order of each sum does not depend on the place of its tile. That holds for all kernels of the catalog,
except those that divide k over the whole grid, those that sum rows and columns at the edge in another order, and those
that inspect a whole operand to decide how to compute a tile.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, lru_cache

from gemmlab.core.errors import UsageError
from gemmlab.core.precision import FLOAT_BYTES
from gemmlab.core.words import assignments
from gemmlab.dispatch.call import Call
from gemmlab.dispatch.choice import choice_for, order_of
from gemmlab.dispatch.choice_values import Choice
from gemmlab.dispatch.measurements import Measurement, shipped_table
from gemmlab.dispatch.override import named_kernel
from gemmlab.dispatch.piece_plan import ALIGNED, PiecePlan
from gemmlab.dispatch.regions import workspace_of
from gemmlab.dispatch.slices import SLICE
from gemmlab.dispatch.storage import Stored
from gemmlab.dispatch.waves import PARTS, Gpu, estimate
from gemmlab.kernels.kernel import Kernel
from gemmlab.ops.gemm import GemmOp
from gemmlab.ops.gemm_problem import GemmProblem
from gemmlab.pieces.cut import Limits

BY_GRID = frozenset({"stream_k", "peak_simt"})
"""Ids of kernels that divide the steps along k of all tiles, or of the last ones, among their blocks."""
_BY_DATA = {
    "by_tile": "more than 16 rows of A or columns of B that two halves cannot represent are computed differently than "
    "fewer: for such data, bits depend on the pieces"
}
"""Kernel whose method for a tile depends on rows and columns of other tiles -> the consequence, for the plan's note."""
_SEAM = "SEAM"
"""Name of the parameter that is not 0 if a few rows and columns at the edge are computed without tiles (`seam.cuh`)."""
_TILE = 128
"""Launches begin at multiples of this number of rows and columns, and of the kernel's tile."""
_TILES = (("BM", "BX"), ("BN", "BY"))


def whole_choice(call: Call, problem: GemmProblem, where: Gpu) -> tuple[Choice, str]:
    """Return the choice for a product in pieces, and a note if it is not that of the whole product, or if the bits may
    depend on the pieces; else an empty note.

    Raises as `choice_for` does, and `UsageError` if the kernel that the caller names, or every one, cannot work in
    pieces.
    """
    choice = choice_for(call, Stored(problem, 0, 0, 0), where)
    why = _objection(choice.kernel, choice.config)
    if not why:
        return choice, _BY_DATA.get(choice.kernel, "")
    if call.forced:
        raise UsageError(f"gemm: {choice.kernel} {assignments(choice.config)} cannot work in pieces: {why}")
    for one in choice.considered:
        if not _objection(one.kernel, one.config):
            note = f"kernel: {one.kernel}, because {choice.kernel}, which computes it in one piece, {why}"
            found = replace(
                choice, kernel=one.kernel, config=one.config, reason=note,
                order=order_of(one.kernel, one.config, problem, one.in_order),
            )  # fmt: skip
            return found, note
    raise UsageError(f"gemm: no kernel computes {problem.label} in pieces on {where.name}: {choice.kernel} {why}")


def piece_problem(plan: PiecePlan, rows: int, cols: int, alpha: float = 1.0, beta: float = 0.0) -> GemmProblem:
    """Return the problem of a piece with `rows` rows and `cols` columns; the leading dimensions are those of the
    slots.
    """
    rooms = plan.rooms
    deep = max(1, plan.k)
    return GemmProblem(
        m=rows, n=cols, k=plan.k, alpha=alpha, beta=beta, trans_a=plan.turned[0], trans_b=plan.turned[1],
        lda=rooms["a"].cols if plan.turned[0] else deep, ldb=deep if plan.turned[1] else rooms["b"].cols,
        ldc=rooms["c"].cols,
    )  # fmt: skip


def framed(frame: PiecePlan, choice: Choice) -> PiecePlan:
    """Return the plan with the kernel's tile, and with `tail`, the least extents of the pieces at the lower and right
    edge, set to those of a tile.

    Kernels may begin the last tile earlier so that it is whole. They can do so only in a piece of at least a tile.
    """
    tile = _tile(frame, choice.kernel, choice.config)
    return replace(frame, tile=tile, tail=tile)


def limits_for(frame: PiecePlan, choice: Choice, where: Gpu) -> Limits:
    """Return the limits that the chosen kernel sets; the time of a piece is unknown for an unmeasured configuration.

    For equal arguments they are the same object, unless the kernel is a user's file, which may change.
    """
    # Ids have no dots, paths of files have.
    make = _limits.__wrapped__ if "." in choice.kernel else _limits
    return make(frame, choice.kernel, tuple(choice.config.items()), where)


@lru_cache(maxsize=64)
def _limits(frame: PiecePlan, name: str, items: tuple[tuple[str, int], ...], where: Gpu) -> Limits:
    kernel, config = named_kernel(name, "cuda"), dict(items)
    entry = _entry(name, config)

    @cache
    def workspace(rows: int, cols: int) -> int:
        problem = piece_problem(replace(frame, rows=rows, cols=cols), rows, cols)
        return sum(scratch_bytes(kernel, config, problem))

    @cache
    def seconds(rows: int, cols: int) -> float | None:
        if entry is None:
            return None
        problem = GemmProblem(rows, cols, frame.k, trans_a=frame.turned[0], trans_b=frame.turned[1])
        return estimate(entry, problem, where, shipped_table(), parts=config.get(PARTS, 1)).us * 1e-6

    narrow = _narrow(kernel)
    return Limits(
        tile=_tile(frame, name, config), whole=(narrow and frame.m <= frame.n, narrow and frame.m > frame.n),
        workspace=workspace, seconds=seconds,
    )  # fmt: skip


def scratch_bytes(kernel: Kernel, config: Mapping[str, int], problem: GemmProblem) -> tuple[int, int]:
    """Return the bytes of a kernel's workspace for a product, and of its tickets, words that are 0 before its launches;
    each is a multiple of `ALIGNED`.
    """
    instance = kernel.instantiate(config, GemmOp().scalars(problem))
    sizes = workspace_of(kernel, config, problem), FLOAT_BYTES * kernel.tickets(problem, instance)
    return -(-sizes[0] // ALIGNED) * ALIGNED, -(-sizes[1] // ALIGNED) * ALIGNED


def _tile(frame: PiecePlan, name: str, config: Mapping[str, int]) -> tuple[int, int]:
    """Return (rows, columns): the rows and columns of C at which launches begin are multiples of these numbers.

    For a `_narrow` kernel the number along the larger of m and n is no less than the smaller of them. So the smaller
    extent of the whole product is also the smaller one of each piece.
    """
    rows, cols = (
        math.lcm(_TILE, *(config[parameter] for parameter in names if parameter in config)) for names in _TILES
    )
    if _narrow(named_kernel(name, "cuda")):
        # The narrow operand of the whole product is also the narrow one of each piece.
        if frame.m <= frame.n:
            return rows, -(-frame.m // cols) * cols
        return -(-(frame.n + 1) // rows) * rows, cols
    return rows, cols


def _narrow(kernel: Kernel) -> bool:
    """Return whether a kernel's grid is computed from min(M, N): it treats the smaller of m and n specially."""
    return "min(M, N)" in " ".join(kernel.grid)


def _objection(name: str, config: Mapping[str, int]) -> str:
    """Return the reason why a kernel's sums have, or may have, another order in pieces; empty if they have the same."""
    kernel = named_kernel(name, "cuda")
    if kernel.in_order(config):
        return ""
    if kernel.id in BY_GRID:
        return "divides k over the whole grid, so that its sums have another order in pieces"
    if config.get(_SEAM):
        return "sums the rows and columns at the edge in another order, and pieces have other edges"
    # Ids have no dots, paths of files have.
    if "." in name:
        return "does not state in_order, and a user's kernel may have any order of sums"
    return ""


def _entry(name: str, config: Mapping[str, int]) -> Measurement | None:
    """Return the measurement of a kernel and configuration from the table that comes with gemmlab.

    `None` if the table has none. The numbers of parts and of slices of k (`PARTS`, `SLICE`) may differ; the
    measurement returned has the chosen slices.
    """
    free = {PARTS, SLICE}

    def fixed(values: Mapping[str, int]) -> dict[str, int]:
        return {parameter: value for parameter, value in values.items() if parameter not in free}

    for entry in shipped_table().entries:
        if entry.kernel == name and fixed(entry.config) == fixed(config):
            slices = {SLICE: config[SLICE]} if SLICE in config else {}
            return replace(entry, config={**entry.config, **slices})
    return None
