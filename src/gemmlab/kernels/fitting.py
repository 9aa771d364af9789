"""Problems that a kernel takes, made by small changes to problems that it does not take.

A kernel without beta, for square matrices or for whole tiles refuses most of an operation's cases; the others would
test little. So rows are made contiguous, factors set, extents made equal or rounded up until the kernel takes the
problem. Padding between rows stays if the kernel allows it: it shows whether leading dimensions are used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from gemmlab.core.errors import UsageError
from gemmlab.core.program import Config
from gemmlab.kernels.claims import always_read_words
from gemmlab.kernels.kernel import Kernel
from gemmlab.kernels.names import OpNames, names_of
from gemmlab.ops.op import Op

_FACTORS = (1.0, 0.0)
_MULTIPLES = (2, 4, 8, 16, 32, 64, 128, 256)


def fitted(kernel: Kernel, op: Op, config: Config, problems: Iterable[Any]) -> list[Any]:
    """Return the problems in order, changed where necessary so that the kernel takes them in `config`, each once.

    Problems for which no such change is found are left out.
    """
    found: dict[Any, None] = {}
    for problem in problems:
        like = _fit(kernel, op, config, problem)
        if like is not None:
            found[like] = None
    return list(found)


def with_factors(kernel: Kernel, op: Op, problem: Any) -> Any:
    """Return the problem, with factors of 0 replaced by 1 if the kernel always reads the operands that they multiply.

    With a factor of 0, `Op.fill` gives an operand values that must not be read.
    """
    factors = {op.factors[name] for name in kernel.always_reads}
    zeros = {name: 1.0 for name in factors if getattr(problem, name) == 0.0}
    return replace(problem, **zeros) if zeros else problem


def as_taken(kernel: Kernel, op: Op, problem: Any) -> Any:
    """Return the problem in a layout that the kernel reads and with factors that it takes (`with_factors`).

    A problem that states a layout or padding keeps its layout, which the kernel may refuse.
    """
    return with_factors(kernel, op, _readable(kernel, op, problem))


def factor_notes(kernel: Kernel, op: Op) -> list[str]:
    """Return notes on the changes that `with_factors` makes: `reads C when beta is 0, so beta is 1 where it would be
    0`; or, for a kernel that takes no other value, `always reads C and takes no beta but 1, so beta is 1`.
    """
    factors = dict.fromkeys(op.factors[name] for name in kernel.always_reads)
    read = {name: always_read_words(kernel.always_reads, op.factors, name) for name in factors}
    only = {name for name in factors if any(one.that.text == f"{name} == 1" for one in kernel.restrictions)}
    return [
        f"always {words.partition(' when ')[0]} and takes no {name} but 1, so {name} is 1"
        if name in only else f"{words}, so {name} is 1 where it would be 0"
        for name, words in read.items()
    ]  # fmt: skip


def same_for_all(kernels: Iterable[Kernel], op: Op, problems: Sequence[Any]) -> tuple[list[Any], list[str]]:
    """Return the problems on which all kernels are compared, and notes on what was changed.

    If one of the kernels always reads an operand, the operand's factor is not 0 in any problem (`with_factors`).
    """
    found, notes = list(problems), list[str]()
    for kernel in kernels:
        taken = [with_factors(kernel, op, problem) for problem in found]
        if taken != found:
            notes += [f"{kernel.id} {note}, for all contestants" for note in factor_notes(kernel, op)]
        found = taken
    return found, notes


def _readable(kernel: Kernel, op: Op, problem: Any) -> Any:
    if "nn" in kernel.layouts or problem not in op.in_layouts(problem, ["nn"]):
        return problem
    return op.in_layouts(problem, kernel.layouts)[0]


def _fit(kernel: Kernel, op: Op, config: Config, problem: Any) -> Any:
    problem = _readable(kernel, op, problem)
    best, broken = problem, len(kernel.refusals(config, op.scalars(problem)))
    for changed in _changes(names_of(op.name), problem) if broken else ():
        # Later changes build on earlier ones that helped.
        try:
            candidate = changed(best)
        except UsageError:
            # Some changes are impossible alone: matrices that lie side by side need long rows.
            continue
        left = len(kernel.refusals(config, op.scalars(candidate)))
        if left < broken:
            best, broken = candidate, left
        if not broken:
            break
    return None if broken else best


def _changes(names: OpNames, problem: Any) -> Iterator[Any]:
    """Yield functions that each return a changed problem, which demands less of a kernel in one respect.

    They are made for `problem`, in the order in which they are tried; none if the extents are not fields of it.
    """
    if not names.extents or not {*names.extents} <= {each.name for each in fields(problem)}:
        return
    rows = [name for name in names.whole if name.startswith("ld")]
    for name in rows if _padding(problem, rows) else ():
        for multiple in _MULTIPLES:
            yield lambda p, name=name, multiple=multiple: replace(p, **{name: _rounded(getattr(p, name), multiple)})
    for name in rows:
        yield lambda p, name=name: replace(p, **{name: 0})
    for name in names.real:
        for factor in _FACTORS:
            yield lambda p, name=name, factor=factor: replace(p, **{name: factor})
    volume = 1
    for name in names.extents:
        volume *= getattr(problem, name)
    # A square with the same amount of work: one as long as a long row would take far too long.
    edge = round(volume ** (1 / len(names.extents)))
    yield lambda p: _with_extents(p, rows, dict.fromkeys(names.extents, edge))
    for multiple in _MULTIPLES:
        for which in (*((name,) for name in names.extents), names.extents):
            yield lambda p, which=which, multiple=multiple: _with_extents(
                p, rows, {name: _rounded(getattr(p, name), multiple) for name in which}
            )


def _with_extents(problem: Any, rows: Iterable[str], extents: Mapping[str, int]) -> Any:
    """Return the problem with other extents, and at least as many elements between its rows as before.

    A leading dimension that was a multiple of a power of two (up to 64) still is.
    """
    padding = _padding(problem, rows)
    packed = replace(problem, **dict.fromkeys(rows, 0), **extents)
    longer = {
        name: _rounded(getattr(packed, name) + more, _alignment(getattr(problem, name)))
        for name, more in padding.items()
    }
    return replace(packed, **longer)


def _padding(problem: Any, rows: Iterable[str]) -> dict[str, int]:
    """Return the number of elements between the end of a row and the next one, by the names of leading dimensions.

    Leading dimensions without such elements are left out; all are if the problem needs long rows.
    """
    try:
        packed = replace(problem, **dict.fromkeys(rows, 0))
    except UsageError:
        # Matrices that lie side by side need their long rows.
        return {}
    padding = {name: getattr(problem, name) - getattr(packed, name) for name in rows}
    return {name: more for name, more in padding.items() if more}


def _alignment(number: int) -> int:
    """Return the largest power of two, up to 64, that divides a number."""
    return min(number & -number, 64)


def _rounded(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple
