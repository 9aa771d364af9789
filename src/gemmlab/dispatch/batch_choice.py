"""Choose how a GPU computes a batch, with the reason: all products in one launch, or one after the other.

A pure function of the problem, as `dispatch/choice.py` is for one product. One launch wins if a single product would
leave multiprocessors idle. Products run one after the other if each fills the GPU and a kernel of one product is
faster, or if the caller names a kernel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from gemmlab.core.architecture import runs
from gemmlab.core.errors import UsageError
from gemmlab.core.precision import FLOAT32, FLOAT_BYTES
from gemmlab.dispatch.call import Call
from gemmlab.dispatch.choice import choice_for, named, order_of
from gemmlab.dispatch.choice_values import RECORD, RULE, Candidate, Choice
from gemmlab.dispatch.measurements import Measurement, shipped_table, time_key
from gemmlab.dispatch.precision_rule import precision_for
from gemmlab.dispatch.storage import Stored
from gemmlab.dispatch.waves import Gpu, estimate, in_domain, scaled_figures
from gemmlab.ops.gemm_problem import GemmProblem
from gemmlab.ops.sizes import LARGEST_EXTENT

FILE = Path(__file__).parent / "batched.json"
"""Figures of kernels of several products, for the rule of waves."""
_TILES = "batched"
"""The kernel whose tiles are also used for the products of a group."""


def batch_choice(call: Call, count: int, what: Stored, where: Gpu) -> Choice | None:
    """Return the kernel for `count` products in one launch, of which `what` is the first; `None` if it is faster to
    compute them one after the other, as `choice_for` says.

    Raises as `choice_for` does.
    """
    if count < 2 or call.forced or not what.begins_on(FLOAT_BYTES):
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
    """Return the choice for a call of `count` products, of which `what` is the first, in one launch or one after the
    other.
    """
    return batch_choice(call, count, what, where) or choice_for(call, what, where)


def group_config(sizes: Sequence[tuple[int, int, int]], where: Gpu) -> Mapping[str, int] | None:
    """Return the tile for products of several shapes (m, n, k) in one launch; `None` if the GPU runs no such kernel.

    The time is estimated from the multiprocessor with the most work: an even share of all tiles' steps, or the deepest
    tile.
    """
    table, deepest = shipped_table(FILE), max((k for _, _, k in sizes), default=0)

    def us(entry: Measurement) -> float:
        _, alone, share, *_ = scaled_figures(entry, where, table)
        steps = sum(-(-m // entry.config["BM"]) * -(-n // entry.config["BN"]) * k for m, n, k in sizes)
        return max(alone * deepest, share * steps / where.sms)

    entries = [entry for entry in table.entries if entry.kernel == _TILES and runs(entry.arch, where.limits.arch)]
    return min(entries, key=us).config if entries else None


def _considered(count: int, p: GemmProblem, where: Gpu, reproducible: bool) -> tuple[Candidate, ...]:
    """Return the kernels and configurations of one launch, the fastest first: only those timed for this batch, if there
    are any.

    Broadcast operands are looked up as if each product had its own.
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
