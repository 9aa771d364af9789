"""Stand-ins for cuBLAS and cublasLt that compute on memory of this process, by their own column-major rules."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any

import numpy as np

TRANS_A, TRANS_B, COUNT, STRIDE = 3, 4, 5, 6


@dataclass(frozen=True)
class Matrix:
    """A column-major operand, `count` of them `stride` elements apart."""

    address: int
    ld: int
    turned: bool = False
    count: int = 1
    stride: int = 0

    def view(self, rows: int, cols: int) -> np.ndarray[Any, Any]:
        """Return op of it, of shape (count, rows, cols)."""
        if self.turned:
            rows, cols = cols, rows
        words = (self.count - 1) * self.stride + (cols - 1) * self.ld + rows
        flat = np.ctypeslib.as_array((ctypes.c_float * words).from_address(self.address))
        shape, strides = (self.count, rows, cols), (4 * self.stride, 4, 4 * self.ld)
        found = np.lib.stride_tricks.as_strided(flat, shape, strides)
        return found.swapaxes(1, 2) if self.turned else found


def multiply(m: int, n: int, k: int, alpha: float, a: Matrix, b: Matrix, beta: float, c: Matrix) -> None:
    """C = alpha A B + beta C."""
    result = c.view(m, n)
    added = beta * result if beta else 0
    result[...] = alpha * (a.view(m, k) @ b.view(k, n)) + added


def value(argument: Any) -> Any:
    """Return the value of a ctypes argument, through a reference if it is one."""
    return argument._obj.value if hasattr(argument, "_obj") else argument.value


class FakeCublas:
    """`libcublas.so`."""

    def __init__(self) -> None:
        self.math: int | None = None

    def cublasSetMathMode(self, _handle: Any, mode: Any) -> int:  # noqa: N802
        self.math = mode.value
        return 0

    def cublasSgemm_v2(self, _handle: Any, *arguments: Any) -> int:  # noqa: N802
        turned_a, turned_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc = map(value, arguments)
        multiply(m, n, k, alpha, Matrix(a, lda, bool(turned_a)), Matrix(b, ldb, bool(turned_b)), beta, Matrix(c, ldc))
        return 0

    def cublasSgemmStridedBatched(self, _handle: Any, *arguments: Any) -> int:  # noqa: N802
        turned_a, turned_b, m, n, k, alpha, a, lda, sa, b, ldb, sb, beta, c, ldc, sc, count = map(value, arguments)
        left, right = Matrix(a, lda, bool(turned_a), count, sa), Matrix(b, ldb, bool(turned_b), count, sb)
        multiply(m, n, k, alpha, left, right, beta, Matrix(c, ldc, False, count, sc))
        return 0

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("cublas"):
            raise AttributeError(name)
        return lambda *_arguments: 0


@dataclass
class FakeCublasLt:
    """`libcublasLt.so`, with algorithms 0 to 3: number 2 is not usable, and number 3 fails when it runs."""

    things: list[dict[Any, int]] = field(default_factory=list)
    """Handles, operations and layouts: their attributes."""
    ran: list[int] = field(default_factory=list)
    asked: int = 0

    @property
    def cublasLtGetVersion(self) -> Any:  # noqa: N802
        class Version:
            restype: Any = None

            def __call__(self) -> int:
                return 130102

        return Version()

    def _make(self, out: Any, **attributes: int) -> int:
        self.things.append(dict(attributes))
        out._obj.value = len(self.things)
        return 0

    def __getattr__(self, name: str) -> Any:
        if name.endswith("SetAttribute"):
            return self._set
        if name in ("cublasLtCreate", "cublasLtMatmulPreferenceCreate"):
            return self._make
        raise AttributeError(name)

    def _set(self, what: Any, attribute: Any, held: Any, size: Any) -> int:
        assert size.value == ctypes.sizeof(held._obj)
        self.things[what.value - 1][attribute.value] = held._obj.value
        return 0

    def cublasLtMatmulDescCreate(self, out: Any, compute: Any, scale: Any) -> int:  # noqa: N802
        return self._make(out, compute=compute.value, scale=scale.value)

    def cublasLtMatrixLayoutCreate(self, out: Any, kind: Any, rows: Any, cols: Any, ld: Any) -> int:  # noqa: N802
        assert ld.value >= rows.value, "a column-major leading dimension spans a column"
        return self._make(out, kind=kind.value, rows=rows.value, cols=cols.value, ld=ld.value)

    def cublasLtMatmulAlgoGetHeuristic(self, *arguments: Any) -> int:  # noqa: N802
        self.asked += 1
        results, count = arguments[-2:]
        assert arguments[-3].value == len(results) == 16
        count._obj.value = 4
        for index in range(4):
            results[index].algorithm[0] = index
            results[index].state = 15 if index == 2 else 0
        return 0

    def cublasLtMatmul(self, _handle: Any, what: Any, *arguments: Any) -> int:  # noqa: N802
        alpha, a, left, b, right, beta, c, result, d, again, algorithm, _workspace, nbytes, _stream = arguments
        assert (c.value, result.value) == (d.value, again.value)
        assert nbytes.value == 32 << 20
        number = int(algorithm._obj[0])
        self.ran.append(number)
        if number == 3:
            return 7
        made = self.things[what.value - 1]
        of_a, of_b, of_c = (self.things[layout.value - 1] for layout in (left, right, result))

        def matrix(address: Any, layout: dict[Any, int], flag: int = 0) -> Matrix:
            count, stride = layout.get(COUNT, 1), layout.get(STRIDE, 0)
            return Matrix(address.value, layout["ld"], bool(made.get(flag, 0)), count, stride)

        k = of_a["rows" if made.get(TRANS_A) else "cols"]
        multiply(of_c["rows"], of_c["cols"], k, value(alpha), matrix(a, of_a, TRANS_A), matrix(b, of_b, TRANS_B),
                 value(beta), matrix(c, of_c))  # fmt: skip
        return 0
