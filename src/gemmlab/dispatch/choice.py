"""Choose the kernel and configuration of a product on a GPU, with the reason: a pure function of the problem.

The kernel with the least time wins. Times of exactly this problem that were measured on this GPU model come before
estimates (`dispatch/waves.py`, `dispatch/correction.py`) at the same precision. A precision lower than requested is
never considered.

The choice depends on the problem, its layout and leading dimensions, whether all operands begin on 16 bytes, the
requested precision, `reproducible`, the GPU and the table; a choice that `gemmlab tune --library` stored on this
machine replaces it. It does not depend on other addresses, nor on other work of the GPU. The same holds for the order
of each sum; `Choice.order` is its digest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache

from gemmlab.core.architecture import runs
from gemmlab.core.errors import UsageError
from gemmlab.core.log import LOG
from gemmlab.core.precision import FLOAT_BYTES, PRECISIONS
from gemmlab.core.version import __version__
from gemmlab.core.words import assignments
from gemmlab.dispatch.call import Call
from gemmlab.dispatch.choice_store import stored_choice
from gemmlab.dispatch.choice_values import FORCED, RECORD, RULE, TUNED, Candidate, Choice
from gemmlab.dispatch.correction import Guess, corrected
from gemmlab.dispatch.measurements import Measurement, Table, in_parts, shipped_table, time_key
from gemmlab.dispatch.override import checked_config, named_kernel
from gemmlab.dispatch.precision_rule import METHODS, forced_precisions, no_lower, precision_for
from gemmlab.dispatch.regions import MOST_BYTES
from gemmlab.dispatch.slices import sliced, workspace_for
from gemmlab.dispatch.storage import Stored
from gemmlab.dispatch.waves import PARTS, Gpu, Rule, in_domain, odd_rows, unmet
from gemmlab.kernels.catalog import SOURCE_SUFFIXES, find_kernel
from gemmlab.kernels.digest import source_digest
from gemmlab.ops.gemm import GemmOp
from gemmlab.ops.gemm_problem import GemmProblem
from gemmlab.ops.sizes import LARGEST_EXTENT

CHAIN = "k"
"""`Choice.order` of sums that are one chain of multiply-adds in the order of k."""
VECTOR_BYTES = 16
"""The widest alignment, in bytes, that a kernel may require of its operands. Whole arrays have it, parts may not."""
MOST_BLOCKS = 1100
"""The most blocks of a launch whose blocks share k: more would not run at once, and were not measured."""


def choice_for(call: Call, what: Stored, where: Gpu) -> Choice:
    """Return the choice for a call whose product is stored as `what` describes. Raises as `choose` and `forced` do.

    The kernel that the caller names comes first, then the one tuned on this machine, then the one of `choose`.
    """
    problem, table, aligned = what.problem, shipped_table(), what.begins_on(VECTOR_BYTES)
    if call.forced:
        found = forced(call.kernel, call.config, problem, where, table, call.precision, call.reproducible, aligned)
    else:
        usual = choose(problem, where, table, precision=call.precision, reproducible=call.reproducible, aligned=aligned)
        found = _own(usual, call, problem, where, aligned) or usual
    LOG.debug("%s on %s: %s %s (%s)", problem.label, where.name, found.kernel, dict(found.config), found.reason)
    return found


def require_extents(call: Call, problem: GemmProblem) -> None:
    """Raise `UsageError` for a product that no shipped kernel can compute, because a size does not fit in 32 bits.

    A kernel in a file of the caller's may count in 64 bits.
    """
    of_file = call.kernel is not None and str(call.kernel).endswith(SOURCE_SUFFIXES)
    if not of_file and not countable(problem):
        raise UsageError(
            f"gemm: {problem.label} has an extent or a leading dimension above {LARGEST_EXTENT}, the largest that "
            "kernels on a GPU take; compute it in parts"
        )


def countable(problem: GemmProblem) -> bool:
    """Return whether the extents and leading dimensions of a product are whole numbers of 32 bits."""
    return max(problem.m, problem.n, problem.k, problem.lda, problem.ldb, problem.ldc) <= LARGEST_EXTENT


def _own(usual: Choice, call: Call, problem: GemmProblem, where: Gpu, aligned: bool) -> Choice | None:
    """Return the choice that `gemmlab tune --library` stored on this machine; `None` if none is stored or fits the
    call.

    The result is `usual`, the shipped choice, with the fields of the stored kernel. A call with `reproducible` gets
    `None`: the order must not depend on a machine.
    """
    entry = stored_choice(where.machine, time_key(problem), call.precision) if where.machine else None
    if entry is None or call.reproducible:
        return None
    kernel = named_kernel(entry.kernel, "cuda")
    fits = (
        kernel.precision in no_lower(call.precision)
        and (not kernel.arch or runs(kernel.arch, where.limits.arch))
        and (aligned or kernel.align <= FLOAT_BYTES)
        and not kernel.refusal(entry.config, GemmOp().scalars(problem))
    )
    if not fits:
        return None
    chain = kernel.in_order(entry.config)
    workspace = workspace_for(kernel, entry.config, problem)
    gain = f"{entry.us:.1f} us against {entry.shipped_us:.1f} us of the shipped choice"
    return replace(
        usual, kernel=kernel.id, config=dict(entry.config), basis=TUNED,
        reason=f"tuned: measured on this machine, {entry.taken[:10]}: {gain} (GEMMLAB_TUNED=0 takes that)",
        order=order_of(kernel.id, entry.config, problem, chain),
        workspace_bytes=workspace.nbytes, regions=workspace.regions,
    )  # fmt: skip


def choose(
    problem: GemmProblem, where: Gpu, table: Table, *, precision: str, reproducible: bool = False, aligned: bool = True
) -> Choice:  # fmt: skip
    """Return the choice with the least time among the kernels of `table` that read the problem's layout in place.

    Measured times come before estimates at the same precision. `precision` is a request by a caller
    (`dispatch/precision_rule.py`). With `reproducible`, only kernels are considered whose results are one chain of
    multiply-adds in the order of k. `aligned` says that all operands begin on 16 bytes. Raises `UsageError` for an
    unknown precision, and if no kernel can run, with the reason of each.
    """
    precision_for(precision, {entry.precision for entry in table.entries})
    refused: dict[str, str] = {}
    able, allowed = list[Measurement](), no_lower(precision)
    for entry in table.entries:
        if why := _objection(entry, problem, where, allowed, reproducible, aligned):
            refused.setdefault(entry.kernel, why)
        else:
            able.append(entry)
    if precision in METHODS and any(entry.precision == precision for entry in able):
        able = [entry for entry in able if entry.precision == precision]
    # Outside the measured problems an estimate says little, so such kernels are considered only if no other can run.
    key = time_key(problem)
    timed_as = key if where.known == table.gpu and key in table.products else None
    first = [entry for entry in able if _says_something(entry, problem, where, timed_as)]
    found = _candidates(first, problem, where, table, timed_as, refused, reproducible)
    if not found:
        found = _candidates(able, problem, where, table, timed_as, refused, reproducible)
    if not found:
        what = "; ".join(f"{kernel}: {why}" for kernel, why in refused.items())
        raise UsageError(f"gemm: no kernel can compute {problem.label} on {where.name}: {what}")
    competing = {one.kernel for one in found}
    for kernel in competing:
        refused.pop(kernel, None)
    for entry in able:
        if entry.kernel not in refused and entry.kernel not in competing:
            outside = f"is for products with {entry.domain}"
            older = f"is considered on {entry.below} and newer only for products that were measured"
            refused[entry.kernel] = outside if not in_domain(entry, problem) else older
    # An estimate does not compete with times measured for this product at the same precision, nor a plain estimate with
    # corrected ones.
    measured = {one.precision for one in found if one.measured}
    better = {one.precision for one in found if one.corrected}

    def rank(one: Candidate) -> tuple[int, float]:
        later = (one.precision in measured) + (one.precision in better and not one.corrected)
        return 0 if one.measured else later, one.us

    found.sort(key=rank)
    best = found[0]
    workspace = workspace_for(find_kernel(best.kernel), best.config, problem)
    return Choice(
        kernel=best.kernel, config=best.config, basis=RECORD if best.measured else RULE, where=where.name,
        problem=named(problem, precision), reason=_reason(best, problem, where, table),
        order=order_of(best.kernel, best.config, problem, best.in_order),
        workspace_bytes=workspace.nbytes, regions=workspace.regions, considered=tuple(found), refused=refused,
    )  # fmt: skip


def forced(
    kernel: object, config: object, problem: GemmProblem, where: Gpu, table: Table, precision: str,
    reproducible: bool = False, aligned: bool = True,
) -> Choice:  # fmt: skip
    """Return the choice by the caller's `kernel` and `config`.

    `config` replaces parameters of the kernel's reference configuration or, if no kernel is named, parameters of the
    choice of `choose`. Raises `ArgumentTypeError` and `UsageError` for unknown names and illegal values, for a kernel
    whose layouts or precision do not fit the call and, with `reproducible`, for one that does not add in the order of
    k.
    """
    precision_for(precision, PRECISIONS)
    overrides = checked_config(config)
    if kernel is None:
        usual = choose(problem, where, table, precision=precision, reproducible=reproducible, aligned=aligned)
        found = named_kernel(usual.kernel, "cuda")
        overrides = {**usual.config, **overrides}
    else:
        found = named_kernel(kernel, "cuda")
    chosen = found.configure(overrides)
    if found.precision not in forced_precisions(precision):
        raise UsageError(f"gemm: {found.id} computes in {found.precision}, and precision is {precision!r}")
    if problem.layout not in found.layouts:
        raise UsageError(
            f"gemm: {found.id} reads layouts {', '.join(found.layouts)}; the operands are {problem.layout}"
        )
    chain = found.in_order(chosen)
    if reproducible and not chain:
        raise UsageError(
            f"gemm: {found.id} {assignments(chosen)} does not add in the order of k, which reproducible requires"
        )
    workspace = workspace_for(found, chosen, problem)
    name = found.id if kernel is None else str(kernel)
    # The version, which counts in the order, says nothing of a file of the caller's.
    source = f"{found.id} {source_digest(found)}" if name.endswith(SOURCE_SUFFIXES) else found.id
    return Choice(
        kernel=name, config=chosen, basis=FORCED, where=where.name,
        problem=named(problem, precision), reason="the caller names it",
        order=order_of(source, chosen, problem, chain),
        workspace_bytes=workspace.nbytes, regions=workspace.regions,
    )  # fmt: skip


def named(problem: GemmProblem, precision: str) -> str:
    """Return a problem and the requested precision in words: `"64x64x64 (nn), precision 'highest'"`."""
    return f"{problem.m}x{problem.n}x{problem.k} ({problem.layout}), precision {precision!r}"


def _candidates(
    entries: Iterable[Measurement], problem: GemmProblem, where: Gpu, table: Table, timed_as: str | None,
    refused: dict[str, str], reproducible: bool,
) -> list[Candidate]:  # fmt: skip
    """Return a candidate for each entry and number of parts, with its time.

    Kernels of which no block fits on the GPU, or whose workspace is too large, are added to `refused` with the reason.
    Splits into parts that make more than `MOST_BLOCKS` blocks are left out. `timed_as` is the `time_key` of the product
    if it was measured on this GPU model.
    """
    found = list[Guess]()
    for entry in entries:
        whole = sliced(find_kernel(entry.kernel), entry.config, problem)
        if whole is None:
            refused.setdefault(entry.kernel, f"its workspace would be larger than {MOST_BYTES >> 20} MiB")
            continue
        rule = Rule(entry, problem, where, table)
        for parts in _parts(entry, problem, reproducible):
            guess = rule.estimate(parts)
            if parts > 1 and guess.blocks > MOST_BLOCKS:
                break
            if guess.blocks and not guess.resident:
                refused.setdefault(entry.kernel, f"a block needs more registers or shared memory than {where.name} has")
                break
            config = {**whole, PARTS: parts} if entry.parts else whole
            known = None if timed_as is None else entry.times_us.get(in_parts(timed_as, parts))
            candidate = Candidate(
                entry.kernel, entry.precision, config, guess.us if known is None else known, known is not None,
                guess.blocks, guess.resident, guess.rounds, entry.in_order and parts == 1,
            )  # fmt: skip
            found.append(Guess(candidate, entry, parts, guess))
    return corrected(found, problem, where, table)


def _says_something(entry: Measurement, problem: GemmProblem, where: Gpu, timed_as: str | None) -> bool:
    """Return whether the entry has a useful estimate, or a time measured for this product (`timed_as` as above).

    An estimate is useful in the entry's domain, on GPUs on which no newer kernel replaces this one.
    """
    older = entry.below and runs(entry.below, where.limits.arch)
    if not older and in_domain(entry, problem):
        return True
    return timed_as is not None and any(in_parts(timed_as, parts) in entry.times_us for parts in entry.parts or (1,))


def _parts(entry: Measurement, problem: GemmProblem, reproducible: bool) -> Iterator[int]:
    """Yield the numbers of parts of k to consider; only 1 with `reproducible`, or if the kernel cannot split k.

    There are at most as many parts as k has steps: further blocks would have no work.
    """
    if not entry.parts or reproducible:
        yield 1
        return
    steps = -(-problem.k // entry.config.get("BK", 1))
    for parts in entry.parts:
        if parts == 1 or parts <= steps:
            yield parts


def _objection(
    entry: Measurement, problem: GemmProblem, where: Gpu, allowed: tuple[str, ...], reproducible: bool, aligned: bool
) -> str:  # fmt: skip
    if entry.precision not in allowed:
        return _other_precision(entry.precision, allowed)
    if problem.layout not in entry.layouts:
        return f"reads {', '.join(entry.layouts)} in place, not {problem.layout}"
    if not runs(entry.arch, where.limits.arch):
        return f"needs {entry.arch}"
    if reproducible and not entry.in_order:
        return "does not add in the order of k, which reproducible requires"
    if entry.align > FLOAT_BYTES and not aligned:
        return f"needs operands that begin on {entry.align} bytes"
    if why := unmet(entry, problem):
        return f"needs {why}"
    return ""


@cache
def _other_precision(precision: str, allowed: tuple[str, ...]) -> str:
    lower = PRECISIONS.index(precision) > max(map(PRECISIONS.index, allowed))
    return f"computes in {precision}, which is {'lower than' if lower else 'another way than'} requested"


def order_of(kernel: str, config: Mapping[str, int], problem: GemmProblem, chain: bool) -> str:
    """Return `Choice.order` for a kernel: its id, and for a file of the caller's the digest of its source, too.

    `chain` says that each result is one chain in the order of k.
    """
    if chain:
        return CHAIN
    facts = (__version__, kernel, sorted(config.items()), problem.m, problem.n, problem.k, problem.layout,
             problem.lda, problem.ldb, problem.ldc)  # fmt: skip
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:12]


def _reason(best: Candidate, problem: GemmProblem, where: Gpu, table: Table) -> str:
    if best.measured:
        return f"by record: the least time measured for this product on {table.gpu}"
    basis = f"by rule: least estimated time, from blocks timed on {table.gpu}, {table.taken}"
    if where.known != table.gpu:
        return f"{basis}, scaled to {where.name} by clock, FMA lanes and bandwidth"
    if best.corrected and table.correction:
        basis = f"{basis}, corrected by times of {table.correction.facts['products']:,} random products"
    return f"{basis}; its rows do not begin on 16 bytes" if odd_rows(problem) else basis
