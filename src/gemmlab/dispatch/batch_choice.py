"""Choose how a GPU computes a batch, with the reason: all products in one launch, or one after the other.

The choice is a pure function of the problem, as in `dispatch/choice.py` for one product. The faster way wins, by
measured or estimated times. One launch is faster if a single product would leave multiprocessors idle; single launches
are faster if each product fills the GPU and a kernel of one product is better. If the caller names a kernel, products
run one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from gemmlab.core.architecture import runs
from gemmlab.core.errors import UsageError
from gemmlab.core.precision import FLOAT32, FLOAT_BYTES
from gemmlab.dispatch.call import Call
from gemmlab.dispatch.choice import (
    VECTOR_BYTES,
    choice_for,
    choose,
    countable,
    named,
    order_of,
    require_extents,
)
from gemmlab.dispatch.choice_values import RECORD, RULE, Candidate, Choice
from gemmlab.dispatch.measurements import shipped_table, time_key
from gemmlab.dispatch.precision_rule import precision_for
from gemmlab.dispatch.storage import Stored
from gemmlab.dispatch.waves import Gpu, estimate, in_domain, scaled_figures
from gemmlab.ops.gemm_problem import GemmProblem
from gemmlab.ops.sizes import LARGEST_EXTENT

FILE = Path(__file__).parent / "batched.json"
"""Path of the `measurements.Table`, as JSON, of kernels that compute several products in one launch."""
_TILES = "batched"
"""The kernel whose tiles are also used for the products of a group."""
_LAUNCH_US = 3.5
"""No kernel in the tables starts in less. A product with a smaller share of a group's launch cannot be faster alone."""


def batch_choice(call: Call, count: int, what: Stored, where: Gpu) -> Choice | None:
    """Return the choice for `count` products in one launch, of which `what` is the first.

    `None` if one launch for each product, by `choice_for`, is faster; if there are fewer than two products; if the
    caller names a kernel; or if no kernel of several products can compute them. Raises `UsageError` for an unknown
    precision.
    """
    if count < 2 or call.forced or not what.begins_on(FLOAT_BYTES) or not countable(what.problem):
        return None
    considered = _considered(count, what.problem, where, bool(call.reproducible))
    if not considered:
        return None
    best = considered[0]
    basis, found = (RECORD, "measured") if best.measured else (RULE, "estimated")
    reason = f"by {basis}: one launch; no kernel of one product can compute it"
    precision_for(call.precision, (FLOAT32,))
    try:
        each = choice_for(call, what, where).considered[0].us
    except UsageError:
        pass
    else:
        if count * each < best.us:
            return None
        ways = f"one launch is {found} at {best.us:.1f} us, a launch for each product at {count} x {each:.1f} us"
        reason = f"by {basis}: {ways}"
    return Choice(
        kernel=best.kernel, config=best.config, basis=basis, where=where.name,
        problem=f"{count}*{named(what.problem, call.precision)}", reason=reason,
        order=order_of(best.kernel, best.config, what.problem, best.in_order), considered=considered,
    )  # fmt: skip


def choice_of_call(call: Call, count: int, what: Stored, where: Gpu) -> Choice:
    """Return the choice for a call of `count` products, of which `what` is the first.

    It is that of `batch_choice` for one launch of all products or, if that is `None`, of `choice_for` for a launch of
    each product. Raises as these and `require_extents` do.
    """
    if count:
        require_extents(call, what.problem)
    return batch_choice(call, count, what, where) or choice_for(call, what, where)


def group_config(sizes: Sequence[tuple[int, int, int]], where: Gpu) -> Mapping[str, int]:
    """Return the configuration of kernel `grouped`, one of those of `batched`, for products (m, n, k) in one launch.

    The one with the least estimated time wins. The time is that of the multiprocessor with the most work: an even share
    of all tiles' steps, or the tile with the largest k. The GPU must run `grouped` (`faster_alone`).
    """
    deepest = max((k for _, _, k in sizes), default=0)
    return min(_tiles(where), key=lambda tile: max(tile.alone_us * deepest, tile.together_us(sizes, where))).config


def faster_alone(call: Call, what: Stored, where: Gpu) -> bool:
    """Return whether a product of a group takes less time by itself than its share of a launch of kernel `grouped`.

    The share is that of a full GPU with the best tiles for this product, so only a large product is faster alone, and
    hardly ever without tensor cores. True on a GPU that does not run `grouped`.
    """
    p = what.problem
    stored = (p.m, p.n, p.k, p.lda, p.ldb, p.ldc, p.trans_a, p.trans_b)
    return _faster_alone(stored, where, call.precision, bool(call.reproducible), what.begins_on(VECTOR_BYTES))


@lru_cache(4096)
def _faster_alone(
    stored: tuple[int, int, int, int, int, int, bool, bool], where: Gpu, precision: str, reproducible: bool,
    aligned: bool,
) -> bool:  # fmt: skip
    """Return `faster_alone` of a product with these extents, leading dimensions and transpositions."""
    m, n, k, lda, ldb, ldc, trans_a, trans_b = stored
    share = min((tile.together_us([(m, n, k)], where) for tile in _tiles(where)), default=None)
    if share is None or share <= _LAUNCH_US:
        return share is None
    p = GemmProblem(m, n, k, lda=lda, ldb=ldb, ldc=ldc, trans_a=trans_a, trans_b=trans_b)
    try:
        found = choose(p, where, shipped_table(), precision=precision, reproducible=reproducible, aligned=aligned)
    except UsageError:
        return False
    return found.considered[0].us < share


class _Tile(NamedTuple):
    """One configuration of kernel `grouped` on a GPU."""

    config: Mapping[str, int]
    alone_us: float
    share_us: float
    """`alone_us` and `share_us` are those of `measurements.Figures`."""

    def together_us(self, sizes: Sequence[tuple[int, int, int]], where: Gpu) -> float:
        """Return the time of products (m, n, k) on a GPU that they fill evenly, in microseconds."""
        rows, columns = self.config["BM"], self.config["BN"]
        return self.share_us * sum(-(-m // rows) * -(-n // columns) * k for m, n, k in sizes) / where.sms


@lru_cache(16)
def _tiles(where: Gpu) -> tuple[_Tile, ...]:
    """Return the tiles of kernel `grouped` that run on a GPU; they are those of `batched`."""
    table, found = shipped_table(FILE), list[_Tile]()
    for entry in table.entries:
        if entry.kernel == _TILES and runs(entry.arch, where.limits.arch):
            figures = scaled_figures(entry, where, table)
            found.append(_Tile(entry.config, figures.alone_us, figures.share_us))
    return tuple(found)


def _considered(count: int, p: GemmProblem, where: Gpu, reproducible: bool) -> tuple[Candidate, ...]:
    """Return the kernels and configurations that can compute the batch in one launch, the fastest first.

    If some were timed for this batch, only these are returned. Broadcast operands are treated as if each product had
    its own.
    """
    table, found, key = shipped_table(FILE), list[Candidate](), time_key(p, products=count)
    for entry in table.entries:
        known = entry.times_us.get(key) if where.known == table.gpu else None
        guess = estimate(entry, p, where, table, products=count)
        one_strip = min(p.m, p.n) <= entry.config.get("ROWS", LARGEST_EXTENT)
        if (
            runs(entry.arch, where.limits.arch)
            and guess.resident
            and (known is not None or (one_strip and in_domain(entry, p)))
            and (entry.in_order or not reproducible)
        ):
            found.append(
                Candidate(
                    entry.kernel, entry.precision, entry.config, guess.us if known is None else known,
                    known is not None, guess.blocks, guess.resident, guess.rounds, entry.in_order,
                )
            )  # fmt: skip
    timed = [one for one in found if one.measured]
    return tuple(sorted(timed or found, key=lambda one: one.us))
