"""The algorithms for a mesh of one or two dimensions: the layouts of A, B and C in each."""

from __future__ import annotations

from dataclasses import dataclass

from gemmlab.distributed.placements import COLUMNS, REPLICA, ROWS, SUM

Layout = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Algorithm:
    """An algorithm (`Candidate.algorithm`) with the layouts of the operands when it begins, and of the result."""

    name: str
    a: Layout
    b: Layout
    c: Layout

    @property
    def sums(self) -> Layout:
        """The layout of C before partial sums are reduced; empty if each rank multiplies all of k."""
        words = zip(self.a, self.b, self.c, strict=True)
        found = tuple(SUM if (a, b) == (COLUMNS, ROWS) else c for a, b, c in words)
        return found if SUM in found else ()


def algorithms(a: Layout, b: Layout) -> list[Algorithm]:
    """Return the algorithms for operands with the layouts `a` and `b`.

    Where k of an operand would be cut and sent in panels, a replicated operand stays replicated.
    """
    dimensions = len(a)
    stay_a = tuple(REPLICA if word == REPLICA else COLUMNS for word in a)
    stay_b = tuple(REPLICA if word == REPLICA else ROWS for word in b)
    all_rows, all_columns = (ROWS,) * dimensions, (COLUMNS,) * dimensions
    block = (ROWS, COLUMNS)[:dimensions]
    found = [
        Algorithm("rows", all_rows, stay_b, all_rows),
        Algorithm("columns", stay_a, all_columns, all_columns),
        Algorithm("k", all_columns, all_rows, block),
    ]
    if dimensions > 1:
        found = [Algorithm("grid", (ROWS, stay_a[1]), (stay_b[0], COLUMNS), block), *found, *_mixed(a, b)]
    if set(a) == set(b) == {REPLICA}:
        found.append(Algorithm("local", a, b, a))
    return found


def _mixed(a: Layout, b: Layout) -> list[Algorithm]:
    """Return the algorithms that cut k along one dimension of a mesh of two, and rows or columns of C along the other.
    The operand that is not cut along that other dimension is replicated there.
    """

    def ordered(cut: str, other: str) -> Layout:
        return (other, cut) if of_k else (cut, other)

    # `of_k` is the dimension of the mesh along which k is cut.
    found = []
    for of_k in (0, 1):
        if b[1 - of_k] == REPLICA:
            block = ordered(COLUMNS, ROWS)
            found.append(Algorithm("rows-k", block, ordered(ROWS, REPLICA), block))
        if a[1 - of_k] == REPLICA:
            block = ordered(ROWS, COLUMNS)
            found.append(Algorithm("columns-k", ordered(COLUMNS, REPLICA), block, block))
    return found
