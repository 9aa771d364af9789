"""The reductions that checks try, and their contents: lengths around every block, hard sums, special values."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gemmlab.core.errors import UsageError
from gemmlab.ops.op import Float32Array
from gemmlab.ops.reduce_problem import CONTENTS, OPERATORS, ReduceProblem

POWERS = (4, 5, 7, 8, 9, 10, 11, 12)
"""Exponents of powers of two, which are usual block sizes: with `"quick"` these lengths, one less and one
more are tried.
"""
_FULL_POWERS = (*range(3, 13), 14, 16, 18)
_LONG = (20_011, 70_003)
_FULL_LONG = (131_071, 1_000_003)


def contract_cases(rng: np.random.Generator, scale: str) -> Iterator[ReduceProblem]:
    """Yield problems that cover the contract. `scale` is `"quick"` (0.4 million elements) or `"full"`."""
    if scale not in ("quick", "full"):
        raise UsageError(f"scale {scale!r}: quick or full")
    full = scale == "full"
    lengths = [0, 1, 2, 3, 5, 31, 33, 63, 65, 100]
    for power in _FULL_POWERS if full else POWERS:
        lengths += [2**power - 1, 2**power, 2**power + 1]
    lengths += [int(rng.integers(3000, 9000)) for _ in range(3)]
    lengths += [*_LONG, *(_FULL_LONG if full else ())]
    for index, n in enumerate(dict.fromkeys(lengths)):
        for operator in OPERATORS if full else ("sum", OPERATORS[1 + index % 2]):
            yield ReduceProblem(n, operator)
    for contents in CONTENTS[1:]:
        for n in (3, 700, 4099) if full else (700, 4099):
            for operator in OPERATORS:
                yield ReduceProblem(n, operator, contents)


def operand_contents(problem: ReduceProblem, rng: np.random.Generator) -> Float32Array:
    """Return `problem.n` new numbers of the kind `problem.contents`, not all zero."""
    n = problem.n
    x = rng.random(n, dtype=np.float32) * np.float32(2) - np.float32(1)
    match problem.contents:
        case "positive":
            x = np.abs(x)
        case "wide":
            x = np.ldexp(x, rng.integers(-30, 31, n))
        case "cancelling":
            # Pairs that nearly cancel: the sum is a millionth of the sum of magnitudes, and the loss of any term shows.
            half = n // 2
            x *= np.float32(1000)
            x[half : 2 * half] = -x[:half] * (1 + np.float32(1e-6) * rng.random(half, dtype=np.float32))
            rng.shuffle(x)
        case "nan":
            _put(x, rng, np.nan)
        case "infinite":
            _put(x, rng, np.inf if problem.operator != "min" else -np.inf)
        case "opposed":
            _put(x, rng, np.inf)
            _put(x, rng, -np.inf)
        case "subnormal":
            x *= np.float32(1e-39)
        case "huge":
            # Of one sign, so that the sum overflows in any order.
            x = np.abs(x) * np.float32(3e38)
        case "rising":
            # Elements are their indices: a term added twice or not at all shifts the sum by its index.
            x = np.arange(1, n + 1, dtype=np.float32)
        case _:
            pass
    return np.ascontiguousarray(x)


def _put(x: Float32Array, rng: np.random.Generator, value: float) -> None:
    if x.size:
        x[int(rng.integers(x.size))] = value
