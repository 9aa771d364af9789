"""The batches that checks try: edges of tiles, shared operands, gaps, matrices side by side, layouts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from gemmlab.core.errors import UsageError
from gemmlab.ops.batch_problem import BatchProblem
from gemmlab.ops.gemm_problem import CONTENTS

_SCALARS = ((1.0, 0.0), (1.0, 1.0), (0.5, -1.0), (-1.0, 0.5), (0.75, 0.0))
_SHAPES = (
    (0, 4, 4, 4), (1, 5, 7, 9), (3, 0, 5, 4), (3, 5, 0, 4), (3, 5, 4, 0), (2, 1, 1, 1), (7, 1, 33, 5), (7, 33, 1, 5),
    (5, 31, 33, 17), (4, 32, 32, 32), (4, 33, 31, 40), (3, 64, 64, 64), (3, 65, 63, 66), (2, 129, 130, 19),
    (2, 256, 128, 24), (40, 8, 8, 8), (67, 3, 5, 11),
)  # fmt: skip
_FULL_SHAPES = ((2, 255, 257, 129), (9, 128, 64, 512), (300, 16, 16, 16), (5, 513, 33, 70), (2, 384, 512, 96))


def contract_cases(layouts: Iterable[str], scale: str) -> Iterator[BatchProblem]:
    """Yield problems that cover the contract, once in each layout. `scale` is `"quick"` or `"full"` (more shapes)."""
    if scale not in ("quick", "full"):
        raise UsageError(f"scale {scale!r}: quick or full")
    for layout in layouts:
        for index, (batch, m, n, k) in enumerate((*_SHAPES, *(_FULL_SHAPES if scale == "full" else ()))):
            alpha, beta = _SCALARS[index % len(_SCALARS)]
            yield BatchProblem(m, n, k, alpha, beta, batch=batch).with_layout(layout)
        yield from _strides(BatchProblem(34, 45, 21, 0.5, 2.0, batch=3).with_layout(layout))
        yield from _strides(BatchProblem(36, 44, 24, batch=3).with_layout(layout))
        for alpha, beta in ((0.0, 0.0), (0.0, 1.5), (float("nan"), 0.0), (1.0, float("nan"))):
            yield BatchProblem(18, 17, 16, alpha, beta, batch=3).with_layout(layout)
        for contents in CONTENTS[1:]:
            yield BatchProblem(37, 41, 29, 1.0, 1.0, contents=contents, batch=2).with_layout(layout)


def _strides(packed: BatchProblem) -> Iterator[BatchProblem]:
    """Yield variants of a batch: with shared operands, with gaps between rows and matrices, and with matrices side by
    side in wide rows.
    """
    yield replace(packed, stride_a=0)
    yield replace(packed, stride_b=0)
    yield replace(packed, stride_a=0, stride_b=0)
    yield replace(packed, stride_a=packed.step("a") + 3, stride_b=packed.step("b") + 64, stride_c=packed.step("c") + 5)
    loose = replace(packed, lda=packed.lda + 8, ldb=packed.ldb + 3, ldc=packed.ldc + 4)
    yield loose
    yield replace(loose, stride_b=0, stride_c=loose.step("c") + 7)
    a, b, c = (packed.stored(name)[1] for name in "abc")
    lda, ldb, ldc = (packed.batch * columns + 4 for columns in (a, b, c))
    yield replace(packed, lda=lda, ldb=ldb, ldc=ldc, stride_a=a, stride_b=b, stride_c=c)
