"""The sums along axes that checks try: rows, columns and several axes, around every edge, with gaps that hold NaN."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gemmlab.core.errors import UsageError
from gemmlab.ops.sums_problem import CONTENTS, Free, SumsProblem, Term, middle_axis

_SHAPES = (
    (1, 0, 1), (5, 0, 3), (0, 7, 3), (3, 5, 0), (1, 1, 1), (1, 300, 1), (4, 1, 5), (37, 1, 1), (37, 3, 1), (70, 16, 1),
    (9, 129, 1), (3, 1030, 1), (2, 9001, 1), (1, 3, 700), (1, 70, 4), (1, 530, 3), (1, 600, 33), (1, 65, 132),
    (50, 9, 3), (20, 31, 8), (2, 257, 260), (1, 2, 1), (2, 1, 1), (1, 1, 2), (31, 33, 1), (33, 31, 1), (1, 31, 33),
    (1, 33, 31),
)  # fmt: skip
_FULL_SHAPES = ((1, 70_003, 1), (300, 257, 1), (1, 5000, 17), (1, 9, 20_011), (600, 16, 3), (7, 300, 1027))
_Axes = tuple[tuple[Free, ...], tuple[Term, ...]]
_STRIDED: tuple[_Axes, ...] = (
    # A gap after each row or column: vectors of 16 bytes stay aligned, or do not.
    (((7, 260, 1),), ((257, 1),)),
    (((6, 41, 1),), ((37, 1),)),
    (((64, 1, 1), (3, 900, 70)), ((12, 72),)),
    (((37, 1, 2), (3, 900, 80)), ((12, 39),)),
    # Steps along all axes, and gaps between results.
    (((9, 301, 5),), ((100, 3),)),
    (((30, 2, 1),), ((40, 64),)),
    # Elements that a broadcast repeats.
    (((5, 0, 1),), ((90, 1),)),
    (((6, 0, 1), (4, 50, 6)), ((50, 1),)),
    # Nests of terms.
    ((), ((30, 1), (20, 37))),
    ((), ((128, 1), (9, 132), (5, 1300))),
    (((5, 40, 1),), ((33, 1), (17, 204))),
    (((4, 1, 1), (3, 5000, 4)), ((70, 8), (5, 600))),
    (((3, 1, 1), (2, 4, 3), (4, 70, 6), (2, 1000, 24)), ((6, 8), (2, 300), (2, 5000))),
    (((2, 40, 1), (3, 90, 2), (2, 300, 6), (3, 900, 12)), ((30, 1), (2, 2000), (3, 5000))),
)


def contract_cases(rng: np.random.Generator, scale: str) -> Iterator[SumsProblem]:
    """Yield problems that cover the contract. `scale` is `"quick"` (0.4 million elements) or `"full"`."""
    if scale not in ("quick", "full"):
        raise UsageError(f"scale {scale!r}: quick or full")
    full = scale == "full"
    for outer, length, inner in (*_SHAPES, *(_FULL_SHAPES if full else ())):
        yield middle_axis(outer, length, inner)
    for _ in range(30 if full else 15):
        outer, length, inner = (int(2 ** rng.uniform(0, 6)) for _ in range(3))
        more = int(rng.integers(3))
        yield middle_axis(outer, length, inner, "rising", *((1 + more, 0) if inner == 1 else (1, more)))
    for index, (free, terms) in enumerate(_STRIDED):
        others = (CONTENTS[index % len(CONTENTS)], CONTENTS[(index + 3) % len(CONTENTS)])
        for contents in CONTENTS if full else dict.fromkeys(("rising", *others)):
            yield SumsProblem(free, terms, contents)
    for contents in CONTENTS[1:]:
        yield middle_axis(13, 70, 1, contents)
        yield middle_axis(2, 70, 13, contents)
        yield middle_axis(1, 700, 1, contents)
        yield middle_axis(3, 20, 16, contents)
