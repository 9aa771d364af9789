"""BLAS's names called with anything: `sgemm` as SciPy's, `cblas_sgemm` and `sgemm_`, also with illegal arguments."""

import ctypes
from typing import Any

import numpy as np
from memory import Array, extent, numbers, watched
from products import ALPHAS, BETAS, assert_product, rounded

from gemmlab import blas
from support.trials import Trials

ROWS, COLUMNS = 101, 102
FLAGS = {111: "nN", 112: "tT", 113: "cC"}
_SPARE = 3


class Operand:
    """A matrix with a leading dimension, in memory with NaN between and behind its rows or columns."""

    def __init__(self, rng: np.random.Generator, values: Array, *, by_rows: bool) -> None:
        rows, cols = values.shape
        lines, length = (rows, cols) if by_rows else (cols, rows)
        self.least = max(1, length)
        self.ld = self.least + int(rng.integers(0, _SPARE + 1))
        self.memory = np.full(lines * self.ld + 8, np.nan, np.float32)
        view = self.memory[: lines * self.ld].reshape(lines, self.ld)[:, :length]
        self.view = view if by_rows else view.T
        self.view[...] = values
        self.before = self.memory.tobytes()


def test_scipys_sgemm(trials: Trials) -> None:
    for rng in trials:
        m, n, k = (max(1, extent(rng)) for _ in range(3))
        trans = [int(rng.integers(0, 3)) for _ in range(2)]
        a, b = numbers(rng, (k, m) if trans[0] else (m, k)), numbers(rng, (n, k) if trans[1] else (k, n))
        alpha, beta = float(rng.choice(ALPHAS)), float(rng.choice(BETAS))
        c = numbers(rng, (m, n)) if rng.random() < 0.5 else None
        if c is not None and rng.random() < 0.5:
            c = np.asfortranarray(c)
        x, y = watched(rng, a).view, watched(rng, b).view
        old = np.zeros((m, n)) if c is None else c.astype(np.float64)
        given = None if c is None else c.copy(order="K")
        overwrite = int(rng.integers(0, 2))
        found = blas.sgemm(alpha, x, y, beta, c, trans[0], trans[1], overwrite)
        left, right = (x.T if trans[0] else x), (y.T if trans[1] else y)
        assert found.flags.f_contiguous
        assert_product(found, left, right, alpha, beta, old)
        if c is not None and given is not None and found is not c:
            assert np.array_equal(c, given, equal_nan=True)


def test_native_entries(trials: Trials) -> None:
    told: list[tuple[str, int]] = []
    blas.set_xerbla(lambda routine, number: told.append((routine, number)))
    try:
        for rng in trials:
            told.clear()
            _check_native(rng, told)
    finally:
        blas.set_xerbla(None)


def _check_native(rng: np.random.Generator, told: list[tuple[str, int]]) -> None:
    m, n, k = (extent(rng) for _ in range(3))
    fortran = bool(rng.random() < 0.5)
    layout = COLUMNS if fortran or rng.random() < 0.5 else ROWS
    flags = [int(rng.choice(list(FLAGS))) for _ in range(2)]
    a, b, c = (numbers(rng, shape) for shape in ((m, k), (k, n), (m, n)))
    stored = (a if flags[0] == 111 else a.T, b if flags[1] == 111 else b.T, c)
    operands = [Operand(rng, values, by_rows=layout == ROWS) for values in stored]
    alpha, beta = (rounded(float(rng.choice(choices))) for choices in (ALPHAS, BETAS))
    call: dict[str, Any] = {
        "layout": layout, "trans_a": flags[0], "trans_b": flags[1], "m": m, "n": n, "k": k, "alpha": alpha,
        "a": operands[0].memory.ctypes.data, "lda": operands[0].ld, "b": operands[1].memory.ctypes.data,
        "ldb": operands[1].ld, "beta": beta, "c": operands[2].memory.ctypes.data, "ldc": operands[2].ld,
    }  # fmt: skip
    wrong = _spoil(rng, call, operands, fortran=fortran) if rng.random() < 0.3 else None
    (_fortran if fortran else _cblas)(rng, call)
    for operand in operands[: 3 if wrong else 2]:
        assert operand.memory.tobytes() == operand.before, (wrong, call)
    if wrong:
        routine, number = (
            ("SGEMM", list(call).index(wrong)) if fortran else ("cblas_sgemm", list(call).index(wrong) + 1)
        )
        assert told == [(routine, number)], (wrong, call)
        return
    assert not told, call
    result = operands[2].view.copy()
    assert_product(result, a, b, alpha, beta, c.astype(np.float64))
    operands[2].view[...] = c
    assert operands[2].memory.tobytes() == operands[2].before, "memory beside C was written"


def _spoil(rng: np.random.Generator, call: dict[str, Any], operands: list[Operand], *, fortran: bool) -> str:
    """Make one argument illegal; its name."""
    name = str(rng.choice(["trans_a", "trans_b", "m", "n", "k", "lda", "ldb", "ldc", *([] if fortran else ["layout"])]))
    if name in ("m", "n", "k"):
        call[name] = -int(rng.integers(1, 2**31))
    elif name.startswith("ld"):
        least = operands[("lda", "ldb", "ldc").index(name)].least
        call[name] = least - int(rng.integers(1, 2**20)) if rng.random() < 0.5 else least - 1
    elif name == "layout":
        call[name] = int(rng.choice([0, 100, 103, 111, -1]))
    else:
        call[name] = int(rng.choice([0, 101, 110, 114, -1]))
    return name


def _cblas(_rng: np.random.Generator, call: dict[str, Any]) -> None:
    blas.cblas_sgemm(*call.values())


def _fortran(rng: np.random.Generator, call: dict[str, Any]) -> None:
    letters = [
        ctypes.c_char(str(rng.choice(list(FLAGS.get(call[name], "xQ0")))).encode()) for name in ("trans_a", "trans_b")
    ]
    numbers_at = {name: ctypes.c_int(call[name]) for name in ("m", "n", "k", "lda", "ldb", "ldc")}
    alpha, beta = ctypes.c_float(call["alpha"]), ctypes.c_float(call["beta"])
    at = {name: ctypes.byref(number) for name, number in numbers_at.items()}
    blas.sgemm_(
        ctypes.byref(letters[0]), ctypes.byref(letters[1]), at["m"], at["n"], at["k"], ctypes.byref(alpha), call["a"],
        at["lda"], call["b"], at["ldb"], ctypes.byref(beta), call["c"], at["ldc"],
    )  # fmt: skip
