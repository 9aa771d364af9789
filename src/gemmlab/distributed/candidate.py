"""The values that say how a product of DTensors is spread: an algorithm, and the choice among all."""

from __future__ import annotations

from dataclasses import dataclass

from gemmlab.core.numerals import duration, plain


@dataclass(frozen=True, slots=True)
class Candidate:
    """One algorithm with its layouts, transfers and predicted time."""

    algorithm: str
    """`"rows"`: each rank makes rows of C; `"columns"`: columns; `"grid"`: rows along the first dimension of the mesh,
    columns along the second; `"k"`: each rank multiplies its part of k, and the partial sums are reduced; `"rows-k"`,
    `"columns-k"`: rows or columns along one dimension of the mesh, parts of k along the other; `"local"`: each rank has
    both operands and makes all of C."""
    a: tuple[str, ...]
    """Layout of A when the algorithm begins: a word for each dimension of the mesh, `"rows"` (`Shard(0)`), `"columns"`
    (`Shard(1)`) or `"replica"` (`Replicate()`).
    """
    b: tuple[str, ...]
    """Layout of B when the algorithm begins."""
    c: tuple[str, ...]
    """Layout of the result."""
    bytes_before: float
    """Most bytes that a rank receives when operands are redistributed."""
    bytes_meanwhile: float
    """Most bytes that a rank receives as panels of operands, or as partial sums if `sums` has any."""
    seconds: float
    """Predicted time of the call, in seconds."""
    by_terms: bool = False
    """True if each panel has some terms of k, and all columns of B or rows of A."""
    sums: tuple[str, ...] = ()
    """The layout of C before partial sums are added, with `"sum"` (`Partial()`) where ranks have them; empty if there
    are none.
    """


@dataclass(frozen=True, slots=True)
class Choice:
    """The algorithm of a call, and all algorithms that were considered, the one predicted fastest first."""

    best: Candidate
    considered: tuple[Candidate, ...]

    @property
    def reason(self) -> str:
        """One sentence with the algorithm's bytes and predicted time, and the other algorithms' times."""
        best = self.best
        moved = f"{plain(best.bytes_before / 1e6)} MB before and {plain(best.bytes_meanwhile / 1e6)} MB "
        moved += "afterwards" if best.sums else "meanwhile"
        others = ", ".join(f"{one.algorithm} {duration(one.seconds * 1e6)}" for one in self.considered[1:])
        return f"{best.algorithm}: each rank receives {moved}, {duration(best.seconds * 1e6)} predicted" + (
            f" (others: {others})" if others else ""
        )

    def __str__(self) -> str:
        return self.reason
