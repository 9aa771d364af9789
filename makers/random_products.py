"""Random products for `regret.py` and `sweep_kernels.py`: extents log-uniform, layout and leading dimensions random."""

from __future__ import annotations

import math
import random
from dataclasses import replace

from gemmlab.ops.gemm_problem import LAYOUTS, GemmProblem

LARGEST, MOST_STEPS = 16384, 2**38
"""The largest extent, and the most multiply-adds of a product."""
PADDING = 16
"""The most elements between the end of a row and the next one. About half of the products have none."""


def draw(
    seed: int, count: int, largest: int = LARGEST, most: int = MOST_STEPS, deepest: int = LARGEST
) -> list[GemmProblem]:  # fmt: skip
    """Return `count` different products with extents up to `largest`, k up to `deepest` and at most `most`
    multiply-adds. They depend only on the arguments.
    """
    chance = random.Random(seed)  # noqa: S311 - a draw that can be repeated
    found: dict[str, GemmProblem] = {}
    while len(found) < count:
        m, n, k = (min(largest, int(math.exp(chance.uniform(0.0, math.log(largest + 1))))) for _ in range(3))
        if m * n * k > most or k > deepest:
            continue
        layout, padded = chance.choice(LAYOUTS), chance.random() < 0.5
        more = {name: chance.randint(0, PADDING) if padded else 0 for name in ("lda", "ldb", "ldc")}
        packed = GemmProblem(m, n, k).with_layout(layout)
        problem = replace(packed, **{name: getattr(packed, name) + extra for name, extra in more.items()})
        found.setdefault(problem.label, problem)
    return list(found.values())
