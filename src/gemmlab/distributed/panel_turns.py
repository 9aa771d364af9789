"""The turns of a product whose operands are sent: the parts of k, of A's rows and of B's columns, one after another.

    B, cut into rows of k, is sent                      A, cut into columns of k, is sent

             columns of B ->                                       k ->
           | 1 | 2  | 3  | 4 ...     turns               turn 1    ---0---
      k    | 0 |    |    |                               turn 2    -------     rows of A
      v    | 1 |    |    |                               turn 3    -------

Turn 0 needs no message: it multiplies a rank's own terms of k, while the panel of turn 1 is sent. Turn 1 adds the other
terms. Each later turn has all terms, if k is at most `panels.DEPTH`, so that its part of C is written once.

If few panels with all lines and some terms of k (`by_terms`) hold the operand, these are sent instead: turn 0
multiplies all own terms, and each later turn adds the terms of one panel to all of C. So does a product whose kernel
converts the operand that stays, which would be converted for each range of columns. Where each rank has panels of its
own (`others`), rank r receives the terms of rank r + 1 first, then those of rank r + 2, and so on. Then no rank waits
until its own terms' turns are over, and at any time each rank sends to one other.

If both operands are sent, or if sums must have one order on any number of ranks, each turn has all rows and columns and
a part of k instead, and nothing is multiplied before the first panel has arrived.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gemmlab.distributed import panels


@dataclass(frozen=True, slots=True)
class Turn:
    """A product of panels, for `rows` and `columns` of this rank's part of C."""

    terms: range
    """Terms of k that the turn's panels have."""
    rows: range
    columns: range
    parts: tuple[range, ...]
    """Ranges of k that the turn multiplies: all of `terms`, or those that the rank's own turn has not multiplied."""
    own: bool = False
    """True for the rank's own terms, which it multiplies before the first panel has arrived."""


def own_turn(
    m: int, n: int, k: int, *, sends_a: bool, sends_b: bool, fixed: bool, own: range, by_terms: bool = False
) -> Turn | None:
    """Return the turn of a rank's own terms, for the lines of the first panel; `None` if there is none. The arguments
    are those of `turns_of`.
    """
    if fixed or not own or sends_a == sends_b:
        return None
    lines = m if sends_a else n
    first = range(lines) if by_terms else _lines(lines, k)[0]
    return Turn(own, first if sends_a else range(m), range(n) if sends_a else first, (own,), own=True)


def turns_of(
    m: int, n: int, k: int, *, sends_a: bool, sends_b: bool, fixed: bool, own: range, by_terms: bool = False,
    others: Sequence[range] | None = None,
) -> list[Turn]:  # fmt: skip
    """Return the turns for a rank's m x n part of C. `k` is the whole extent, `own` the rank's own part of it.

    If `others` is `None`, all ranks that send each other an operand have the same panels of it, in the same order. Else
    `others` are the parts of k of the other ranks, in the order in which this rank receives them if panels have some
    terms (`by_terms`). With `fixed` the order of sums does not depend on what is sent.
    """
    if fixed or (sends_a and sends_b):
        return [Turn(terms, range(m), range(n), (terms,)) for terms in pieces(range(k), panels.PANEL)]
    if not (sends_a or sends_b):
        return [Turn(range(k), range(m), range(n), (range(k),))]
    lines = m if sends_a else n
    if not by_terms:
        cut = [(terms, some) for some in _lines(lines, k) for terms in pieces(range(k), panels.DEPTH)]
    elif others is None:
        cut = [(terms, range(lines)) for terms in pieces(range(k), terms_of(lines))]
    else:
        cut = [(terms, range(lines)) for terms in _terms_of_others(own, others, terms_of(lines))]
    turns = [Turn(terms, some if sends_a else range(m), range(n) if sends_a else some, (terms,)) for terms, some in cut]
    first = own_turn(m, n, k, sends_a=sends_a, sends_b=sends_b, fixed=fixed, own=own, by_terms=by_terms)
    if first is None:
        return turns
    return [first, *(without(turn, own) if _same_part(turn, first) else turn for turn in turns)]


def turns_of_ranks(
    m: int, n: int, k: int, *, sends_a: bool, sends_b: bool, fixed: bool, shares: Sequence[range], by_terms: bool,
    apart: bool,
) -> list[list[Turn]]:  # fmt: skip
    """Return the turns of each rank of a group, without those of its own terms. All have the same number of turns.

    `shares` are the ranks' parts of k. With `apart` each rank may have panels of its own. Ranges of the operand that
    stays (rows of A if B is sent) are those of the rank that asks.
    """
    found = []
    for rank, own in enumerate(shares):
        others = [*shares[rank + 1 :], *shares[:rank]] if apart else None
        turns = turns_of(
            m, n, k, sends_a=sends_a, sends_b=sends_b, fixed=fixed, own=own, by_terms=by_terms, others=others
        )
        found.append([turn for turn in turns if not turn.own])
    return found


def _terms_of_others(own: range, others: Sequence[range], most: int) -> list[range]:
    """Return ranges of at most `most` terms that make up `others`, and empty ones, so that all ranks have as many."""
    counts = [len(pieces(terms, most)) for terms in (own, *others)]
    found = [terms for part in others for terms in pieces(part, most)]
    return found + [range(0)] * (counts[0] - min(counts))


def terms_of(lines: int) -> int:
    """Return the most terms of k in a panel that has all of an operand's `lines`."""
    return max(1, panels.WORDS // max(1, lines))


def _same_part(turn: Turn, other: Turn) -> bool:
    return (turn.rows, turn.columns) == (other.rows, other.columns)


def without(turn: Turn, own: range) -> Turn:
    """Return a turn that does not multiply the terms in `own`."""
    terms = turn.terms
    before = range(terms.start, max(terms.start, min(terms.stop, own.start)))
    after = range(min(terms.stop, max(terms.start, own.stop)), terms.stop)
    return replace(turn, parts=tuple(part for part in (before, after) if part))


def pieces(whole: range, most: int) -> list[range]:
    """Return ranges of at most `most` that make up `whole`, whose step is 1."""
    return [whole[first : first + most] for first in range(0, len(whole), most)]


def _lines(extent: int, depth: int) -> list[range]:
    """Return ranges of lines for panels of `depth` terms. The first, whose part of C is written twice, has a quarter of
    the most lines.
    """
    most = max(1, panels.WORDS // max(1, min(depth, panels.DEPTH)))
    first = min(extent, max(1, most // 4))
    return [range(first), *pieces(range(first, extent), most)]
