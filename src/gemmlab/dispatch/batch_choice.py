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

import numpy as np

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
from gemmlab.dispatch.waves import Gpu, estimate, gpu_model, in_domain, resident_blocks, scaled_figures
from gemmlab.ops.gemm_problem import GemmProblem
from gemmlab.ops.sizes import LARGEST_EXTENT

FILE = Path(__file__).parent / "batched.json"
"""Path of the `measurements.Table`, as JSON, of kernels that compute several products in one launch."""
_TILES = "batched"
"""The kernel whose tiles are also used for the products of a group."""
_LAUNCH_US = 3.5
"""No kernel in the tables starts in less. A product with a smaller share of a group's launch cannot be faster alone."""
_FETCH_US = 0.7
"""The time in which an H200's memory answers. A block alone waits for it once for every `STAGES - 1` blocks of k: a
group whose longest sum had 4096 terms took 96.2 us with `BK` 16 and three stages. The figures, which were fitted to
batches with shorter sums and more blocks, said 28.
"""
Sizes = Sequence[tuple[int, int, int]]
"""Extents (m, n, k) of products."""


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


def group_config(sizes: Sizes, where: Gpu) -> Mapping[str, int]:
    """Return the configuration of kernel `grouped`, one of those of `batched`, for products (m, n, k) in one launch.

    The one with the least estimated time wins (`_Tile.launch_us`). The GPU must run `grouped` (`faster_alone`).
    """
    return min(_tiles(where), key=lambda tile: tile.launch_us(sizes, where)).config


def longer_alone(call: Call, parts: Sequence[tuple[Stored, int]], where: Gpu) -> frozenset[int]:
    """Return the indices of those of `parts` that are to be computed by themselves, because the rest of a group then
    takes less time.

    A part is a product and the number of times that a result of the group has it. One block of a group's launch adds up
    a whole sum, so a launch takes as long as the longest sums, however few those are; kernels of one product share a
    long sum among blocks. The largest k go first, as many as make the estimated sum of all times least. The GPU must
    run `grouped`.
    """
    order = sorted(range(len(parts)), key=lambda index: -parts[index][0].problem.k)
    sizes = [(p.m, p.n, p.k) for index in order for p in [parts[index][0].problem] for _ in range(parts[index][1])]
    together_us = best_us = _launch_us(sizes, where)
    # The sum of the times alone of the first products, how many they are, and how many parts the best sum has alone.
    apart_us, first, alone = 0.0, 0, 0
    for at, index in enumerate(order):
        what, count = parts[index]
        depth = what.problem.k
        if at and depth < sizes[first - 1][2]:
            together_us = _launch_us(sizes[first:], where)
            if apart_us + together_us < best_us:
                best_us, alone = apart_us + together_us, at
        # Other blocks hide a sum that takes less than a quarter of the launch.
        hidden = 4 * min(tile.longest_us(depth) for tile in _tiles(where)) < together_us
        if hidden or apart_us + count * _LAUNCH_US >= best_us:
            break
        apart_us += count * _alone_us(call, what, where)
        first += count
        if apart_us >= best_us:
            break
    else:
        if apart_us < best_us:
            alone = len(order)
    return frozenset(order[:alone])


def _launch_us(sizes: Sizes, where: Gpu) -> float:
    return min(tile.launch_us(sizes, where) for tile in _tiles(where))


def faster_alone(call: Call, what: Stored, where: Gpu) -> bool:
    """Return whether a product of a group takes less time by itself than its share of a launch of kernel `grouped`.

    The share is that of a full GPU with the best tiles for this product, so only a large product is faster alone, and
    hardly ever without tensor cores. True on a GPU that does not run `grouped`.
    """
    p = what.problem
    share = min((tile.together_us([(p.m, p.n, p.k)], where) for tile in _tiles(where)), default=None)
    if share is None or share <= _LAUNCH_US:
        return share is None
    return _alone_us(call, what, where) < share


def _alone_us(call: Call, what: Stored, where: Gpu) -> float:
    """Return the time of a product in a call of its own, in microseconds; infinite if no kernel can compute it."""
    p = what.problem
    stored = (p.m, p.n, p.k, p.lda, p.ldb, p.ldc, p.trans_a, p.trans_b)
    return _us_of_kernel(stored, where, call.precision, bool(call.reproducible), what.begins_on(VECTOR_BYTES))


@lru_cache(4096)
def _us_of_kernel(
    stored: tuple[int, int, int, int, int, int, bool, bool], where: Gpu, precision: str, reproducible: bool,
    aligned: bool,
) -> float:  # fmt: skip
    """Return `_alone_us` of a product with these extents, leading dimensions and transpositions."""
    m, n, k, lda, ldb, ldc, trans_a, trans_b = stored
    p = GemmProblem(m, n, k, lda=lda, ldb=ldb, ldc=ldc, trans_a=trans_a, trans_b=trans_b)
    try:
        found = choose(p, where, shipped_table(), precision=precision, reproducible=reproducible, aligned=aligned)
    except UsageError:
        return float("inf")
    return found.considered[0].us


class _Tile(NamedTuple):
    """One configuration of kernel `grouped` on a GPU."""

    config: Mapping[str, int]
    start_us: float
    alone_us: float
    """Microseconds of a step along k of a block alone, by the figures, and at least its wait for memory
    (`_FETCH_US`).
    """
    share_us: float
    ends: float
    """`start_us`, `share_us` and `ends` are those of `measurements.Figures`."""
    resident: int
    """Number of blocks that a multiprocessor runs at a time."""
    memory_gbs: float

    def longest_us(self, k: int) -> float:
        """Return the time of a block alone with sums of k terms, in microseconds."""
        return self.alone_us * (k + self.ends)

    def launch_us(self, sizes: Sizes, where: Gpu) -> float:
        """Return the time of one launch for products (m, n, k) in microseconds, by the rule of `waves.py`: that of the
        multiprocessor with the most blocks, with rounds of blocks of different k, the largest first.
        """
        if not sizes:
            return 0.0
        m, n, k = np.array(sorted(sizes, key=lambda size: -size[2]), np.int64).T
        behind = np.cumsum(-(-m // self.config["BM"]) * -(-n // self.config["BN"]))
        own = np.searchsorted(behind, np.arange(0, behind[-1], where.sms), side="right")
        steps = np.zeros(-(-own.size // self.resident) * self.resident)
        steps[: own.size] = k[own] + self.ends
        rounds = steps.reshape(-1, self.resident)
        blocks = float(np.maximum(self.alone_us * rounds[:, 0], self.share_us * rounds.sum(axis=1)).sum())
        memory = FLOAT_BYTES * float((m * k + k * n + m * n).sum()) / (self.memory_gbs * 1e3)
        return self.start_us + max(blocks, memory)

    def together_us(self, sizes: Sizes, where: Gpu) -> float:
        """Return the time of products (m, n, k) on a GPU that they fill evenly, in microseconds."""
        rows, columns = self.config["BM"], self.config["BN"]
        return self.share_us * sum(-(-m // rows) * -(-n // columns) * k for m, n, k in sizes) / where.sms


@lru_cache(16)
def _tiles(where: Gpu) -> tuple[_Tile, ...]:
    """Return the tiles of kernel `grouped` that run on a GPU; they are those of `batched`."""
    table, found = shipped_table(FILE), list[_Tile]()
    memory_gbs = table.memory_gbs * where.memory_gbs / gpu_model(table.gpu).memory_gbs
    for entry in table.entries:
        if entry.kernel == _TILES and runs(entry.arch, where.limits.arch):
            figures, config = scaled_figures(entry, where, table), entry.config
            resident = resident_blocks(where.limits, entry.registers, entry.smem, entry.threads)
            alone = max(figures.alone_us, _FETCH_US / (config["BK"] * (config["STAGES"] - 1)))
            if resident:
                found.append(
                    _Tile(config, figures.start_us, alone, figures.share_us, figures.ends, resident, memory_gbs)
                )
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
