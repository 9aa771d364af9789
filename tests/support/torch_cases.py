"""What torch's operator is tried with on the CPU and on a GPU: shapes, options, mistakes, and torch's own answer."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

Shape = tuple[int, ...]
CASES: list[tuple[tuple[Shape, ...], dict[str, Any]]] = [
    (((5, 7), (7, 3)), {}),
    (((5, 7), (7, 3), (3,)), {}),
    (((5, 7), (7, 3), (5, 3)), {"alpha": 0.5, "beta": -2.0}),
    (((7, 5), (7, 3)), {"trans_a": True, "alpha": 3.0}),
    (((5, 7), (3, 7), (3,)), {"trans_b": True, "beta": 1.0}),
    (((7, 5), (3, 7), (5, 1)), {"trans_a": True, "trans_b": True, "beta": 2.0}),
    (((2, 5, 7), (7, 3), (3,)), {"beta": 2.0}),
    (((2, 7, 5), (3, 7)), {"trans_a": True, "trans_b": True}),
    (((2, 1, 5, 7), (4, 7, 3), (4, 1, 3)), {"beta": 2.0}),
    (((5, 7), (2, 3, 7)), {"trans_b": True}),
    (((7,), (2, 3, 7)), {"trans_b": True}),
    (((5, 7), (7,), (5,)), {"beta": 1.0}),
    (((7,), (7,), ()), {"beta": 1.0}),
    (((0, 7), (7, 3), (3,)), {"beta": 1.0}),
    (((2, 5, 0), (0, 3), (3,)), {"beta": 1.0}),
]
"""Shapes of a, b and perhaps c, and options."""

Make = Callable[..., Any]
"""(shape) -> a float32 tensor on the device that is tried."""
REFUSED: list[tuple[str, Callable[[Make], tuple[Any, ...]], dict[str, Any], str]] = [
    ("dtype", lambda make: (make(5, 7), make(7, 3).double()), {}, r"b has dtype torch\.float64.*b\.float\(\) converts"),
    ("c's dtype", lambda make: (make(5, 7), make(7, 3), make(3).half()), {}, r"c has dtype torch\.float16, not"),
    ("integers", lambda make: (make(5, 7).int(), make(7, 3)), {}, r"a has dtype torch\.int32"),
    ("k", lambda make: (make(5, 7), make(6, 3)), {}, r"\(5, 7\) and op\(b\) of shape \(6, 3\).*k is 7 .* and 6"),
    ("k of transposes", lambda make: (make(5, 7), make(7, 3)), {"trans_a": True}, r"\(7, 5\).*k is 5 .* and 7"),
    ("leading axes", lambda make: (make(2, 5, 7), make(3, 7, 4)), {}, r"axes \(2,\) of a and \(3,\) of b do not"),
    ("a number", lambda make: (make(), make(7, 3)), {}, "a is a scalar"),
    ("c's shape", lambda make: (make(5, 7), make(7, 3), make(2)), {"beta": 1.0}, r"c of shape \(2,\) does not broad"),
    ("c's axes", lambda make: (make(5, 7), make(7, 3), make(1, 5, 3)), {}, r"c of shape \(1, 5, 3\) does not"),
    ("no c", lambda make: (make(5, 7), make(7, 3)), {"beta": 2.0}, "beta is 2.0 but there is no c"),
    ("precision", lambda make: (make(5, 7), make(7, 3)), {"precision": "low"}, "precision is 'low'; it must be one"),
]
"""What is wrong, operands, options, and what is said of them."""


def reference(
    a: Any, b: Any, c: Any = None, *, alpha: float = 1.0, beta: float = 0.0, trans_a: bool = False,
    trans_b: bool = False,
) -> Any:  # fmt: skip
    """What the operator means, in torch's words."""
    left = a.mT if trans_a and a.ndim > 1 else a
    right = b.mT if trans_b and b.ndim > 1 else b
    result = alpha * (left @ right)
    return result + beta * c if beta else result


def torch_and_gemm() -> tuple[Any, Any]:
    """torch and the operator; skips where there is none."""
    with warnings.catch_warnings():
        # What torch warns of when it is imported is no error of ours, and would end the collection of every file.
        warnings.simplefilter("ignore")
        torch = pytest.importorskip("torch")
        return torch, import_module("gemmlab.torch").gemm
