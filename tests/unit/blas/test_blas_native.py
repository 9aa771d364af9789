"""`sgemm_` and `cblas_sgemm` in this process: the reference BLAS's rules about arguments, scalars and memory."""

from __future__ import annotations

import ctypes
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gemmlab import blas
from gemmlab.blas.native import SET_THREADS, addresses
from gemmlab.core.errors import PeerError
from gemmlab.core.hardware import physical_cores
from gemmlab.timing.peer_libraries import find_library
from support.beside_float64 import ALPHAS, BETAS, Array, assert_right, contents
from support.exact import pair

ROWS, COLUMNS, NO_TRANS, TRANS, CONJ = 101, 102, 111, 112, 113
NAN = np.float32(np.nan)


@dataclass
class Matrix:
    """A matrix in memory that is longer than it has to be; what lies between its rows or columns is NaN."""

    memory: Array
    view: Array
    ld: int

    @property
    def address(self) -> int:
        return self.memory.ctypes.data


def matrix(values: Array, layout: int, spare: int) -> Matrix:
    rows, cols = values.shape
    long, short = (rows, cols) if layout == COLUMNS else (cols, rows)
    ld = max(1, long) + spare
    memory = np.full((short + 1) * ld, NAN)
    whole = memory[: short * ld].reshape(short, ld)[:, :long]
    view = whole.T if layout == COLUMNS else whole
    view[...] = values
    return Matrix(memory, view, ld)


def fortran(
    letters: str, m: int, n: int, k: int, scalars: tuple[float, float], a: Matrix, b: Matrix, c: Matrix
) -> None:
    numbers = [ctypes.c_int(value) for value in (m, n, k, a.ld, b.ld, c.ld)]
    alpha, beta = (ctypes.c_float(value) for value in scalars)
    m_at, n_at, k_at, lda, ldb, ldc = map(ctypes.byref, numbers)
    head = (letters[0].encode(), letters[1].encode(), m_at, n_at, k_at, ctypes.byref(alpha))
    blas.sgemm_(*head, a.address, lda, b.address, ldb, ctypes.byref(beta), c.address, ldc)


EXTENTS = st.integers(0, 40)
LETTERS = {NO_TRANS: "nN", TRANS: "tT", CONJ: "cC"}


@pytest.mark.in_turns(20)
@settings(max_examples=200, deadline=None)
@given(data=st.data(), m=EXTENTS, n=EXTENTS, k=EXTENTS, alpha=ALPHAS, beta=BETAS)
def test_the_product_beside_float64(data: Any, m: int, n: int, k: int, alpha: float, beta: float) -> None:
    layout = data.draw(st.sampled_from((ROWS, COLUMNS)), "layout")
    turns = [data.draw(st.sampled_from(tuple(LETTERS)), name) for name in ("trans_a", "trans_b")]

    def operand(rows: int, cols: int, turned: int, name: str) -> tuple[Matrix, Array]:
        values = contents(data, (rows, cols), name)
        spare = data.draw(st.integers(0, 3), f"spare in {name}")
        return matrix(values if turned == NO_TRANS else values.T, layout, spare), values

    (a, left), (b, right) = operand(m, k, turns[0], "a"), operand(k, n, turns[1], "b")
    c, old = operand(m, n, NO_TRANS, "c")
    around = c.memory.copy()
    if layout == COLUMNS and data.draw(st.booleans(), "Fortran"):
        letters = [data.draw(st.sampled_from(LETTERS[turned])) for turned in turns]
        fortran("".join(letters), m, n, k, (alpha, beta), a, b, c)
    else:
        head = (layout, *turns, m, n, k, alpha)
        blas.cblas_sgemm(*head, a.address, a.ld, b.address, b.ld, beta, c.address, c.ld)
    assert_right(c.view, left, right, alpha, beta, old)
    c.view[...] = old
    assert np.array_equal(c.memory, around, equal_nan=True), "something beside C was written"


def product(**changed: Any) -> Array:
    """C of a row-major call on ones, in which some arguments are others."""
    n = 8
    c, ones = (np.ones((n, n), np.float32) for _ in range(2))
    call = {
        "layout": ROWS, "trans_a": NO_TRANS, "trans_b": NO_TRANS, "m": n, "n": n, "k": n, "alpha": 1.0,
        "a": ones.ctypes.data, "lda": n, "b": ones.ctypes.data, "ldb": n, "beta": 1.0, "c": c.ctypes.data, "ldc": n,
    }  # fmt: skip
    blas.cblas_sgemm(*{**call, **changed}.values())
    return c


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("changed", [{"m": 0}, {"n": 0}, {"k": 0}, {"alpha": 0.0}])
def test_what_need_not_be_touched_need_not_be_there(changed: dict[str, Any]) -> None:
    """With beta 1 nothing is read or written: no pointer is looked at."""
    product(a=None, b=None, c=None, **changed)


@pytest.mark.parametrize("changed", [{"k": 0}, {"alpha": 0.0}])
def test_c_is_scaled_without_a_and_b(changed: dict[str, Any]) -> None:
    assert (product(a=None, b=None, beta=3.0, **changed) == 3).all()
    assert (product(a=None, b=None, beta=0.0, **changed) == 0).all()


@contextmanager
def handled() -> Iterator[list[tuple[str, int]]]:
    """What the error handler is told."""
    told: list[tuple[str, int]] = []
    blas.set_xerbla(lambda routine, number: told.append((routine, number)))
    try:
        yield told
    finally:
        blas.set_xerbla(None)


WRONG = [
    ({"layout": 0}, 1), ({"trans_a": 110}, 2), ({"trans_b": 114}, 3), ({"m": -1}, 4), ({"n": -1}, 5), ({"k": -1}, 6),
    ({"lda": 7}, 9), ({"ldb": 7}, 11), ({"ldc": 7}, 14), ({"lda": -(2**31)}, 9),
    ({"m": 0, "n": 0, "k": 0, "lda": 1, "ldb": 1, "ldc": 0}, 14), ({"m": 0, "n": 0, "k": 0, "lda": 0, "ldc": 0}, 9),
]  # fmt: skip


@pytest.mark.parametrize(("changed", "number"), WRONG)
@pytest.mark.parametrize("layout", [ROWS, COLUMNS])
def test_an_illegal_argument_is_reported_by_its_number(changed: dict[str, Any], number: int, layout: int) -> None:
    with handled() as told:
        c = product(**{"layout": layout, **changed})
    assert told == [("cblas_sgemm", number)]
    assert (c == 1).all()


@pytest.mark.parametrize(
    ("letters", "extents", "spare", "number"),
    [
        ("XN", (8, 8, 8), (0, 0, 0), 1), ("NX", (8, 8, 8), (0, 0, 0), 2), ("NN", (-1, 8, 8), (0, 0, 0), 3),
        ("NN", (8, -1, 8), (0, 0, 0), 4), ("NN", (8, 8, -1), (0, 0, 0), 5), ("TN", (8, 8, 8), (-1, 0, 0), 8),
        ("NC", (8, 8, 8), (0, -1, 0), 10), ("nt", (8, 8, 8), (0, 0, -1), 13),
    ],
)  # fmt: skip
def test_fortrans_numbers_are_its_own(
    letters: str, extents: tuple[int, int, int], spare: tuple[int, ...], number: int
) -> None:
    ones = np.ones((8, 8), np.float32)
    a, b, c = (matrix(ones, COLUMNS, 0) for _ in range(3))
    for operand, more in zip((a, b, c), spare, strict=True):
        operand.ld += more
    with handled() as told:
        fortran(letters, *extents, (1.0, 1.0), a, b, c)
    assert told == [("SGEMM", number)]
    assert (c.view == 1).all()


BESIDE_MKL = """
import ctypes, sys
import numpy as np
from gemmlab import blas
ones = np.ones((8, 8), np.float32)
at, theirs = ctypes.c_void_p(ones.ctypes.data), ctypes.CDLL(sys.argv[1])
out = np.empty((8, 8), np.float32)
one, zero = ctypes.c_float(1), ctypes.c_float(0)
theirs.cblas_sgemm(101, 111, 111, 8, 8, 8, one, at, 8, at, 8, zero, ctypes.c_void_p(out.ctypes.data), 8)
assert (out == 8).all()
blas.cblas_sgemm(101, 111, 111, 8, 8, 8, 1.0, at.value, 8, at.value, 3, 0.0, out.ctypes.data, 8)
whole = [ctypes.byref(ctypes.c_int32(number)) for number in (8, 3)]
ours = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 13)(blas.pointers()["sgemm_"])
word, a, b, c = ctypes.c_char_p(b"N"), *(ctypes.c_void_p(x.ctypes.data) for x in (ones, ones, out))
eight, three, one, zero = (ctypes.cast(x, ctypes.c_void_p) for x in (*whole, ctypes.byref(one), ctypes.byref(zero)))
word = ctypes.cast(word, ctypes.c_void_p)
ours(word, word, eight, eight, eight, one, a, eight, b, three, zero, c, eight)
"""


def test_mkl_in_the_process_gets_no_call_that_it_does_not_understand() -> None:
    """Its `cblas_xerbla` takes a name where the reference BLAS takes a number."""
    try:
        library = find_library("mkl")
    except PeerError as error:
        pytest.skip(f"no MKL here: {error}")
    alone = {**os.environ, "MKL_THREADING_LAYER": "SEQUENTIAL", "MKL_INTERFACE_LAYER": "LP64"}
    done = subprocess.run(
        [sys.executable, "-c", BESIDE_MKL, library], env=alone, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.splitlines() == [
        "Parameter 11 to routine cblas_sgemm was incorrect",
        " ** On entry to SGEMM parameter number 10 had an illegal value",
    ]


def test_without_a_handler_a_line_says_it(capfd: pytest.CaptureFixture[str]) -> None:
    product(ldb=3)
    product(layout=COLUMNS, trans_a=7)
    assert capfd.readouterr().err.splitlines() == [
        "Parameter 11 to routine cblas_sgemm was incorrect", "Parameter 2 to routine cblas_sgemm was incorrect"
    ]  # fmt: skip
    one = matrix(np.ones((1, 1), np.float32), COLUMNS, 0)
    fortran("NN", 2, 1, 1, (1.0, 1.0), one, one, one)
    assert capfd.readouterr().err == " ** On entry to SGEMM parameter number  8 had an illegal value\n"


def right(seed: int) -> bool:
    """Whether a product that is large enough for the library's threads has every bit right."""
    a, b, expected = pair(seed)
    c = np.full_like(a, NAN)
    n = len(a)
    blas.cblas_sgemm(ROWS, NO_TRANS, NO_TRANS, n, n, n, 1.0, a.ctypes.data, n, b.ctypes.data, n, 0.0, c.ctypes.data, n)
    return np.array_equal(c, expected)


def test_addresses_stay_and_threads_may_call_at_once() -> None:
    first = blas.pointers()
    assert sorted(first) == ["cblas_sgemm", "sgemm_"]
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(right, range(64)))
    assert blas.pointers() == first
    assert gemmlab_blas_is(first)


def gemmlab_blas_is(addresses: dict[str, int]) -> bool:
    """Whether the ctypes functions are at these addresses."""
    found = {name: ctypes.cast(getattr(blas, name), ctypes.c_void_p).value for name in addresses}
    return found == addresses


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_has_threads_of_its_own() -> None:
    assert right(0)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if all(right(seed) for seed in range(5)) else 2
        finally:
            os._exit(code)
    assert right(1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.in_turns(20)
def test_the_interpreter_exits_while_threads_wait_for_work() -> None:
    code = (
        "import numpy as np\nfrom gemmlab import blas\n"
        "n = 300\na = np.ones((n, n), np.float32)\nc = a.copy()\nat = a.ctypes.data\n"
        "blas.cblas_sgemm(101, 111, 111, n, n, n, 1, at, n, at, n, 0, c.ctypes.data, n)\nprint((c == n).all())\n"
    )
    environment = {**os.environ, "GEMMLAB_NUM_THREADS": "3"}
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False, timeout=60
        )
        assert (done.stdout, done.stderr, done.returncode) == ("True\n", "", 0)


@pytest.mark.in_turns(20)
def test_nothing_grows_over_many_calls() -> None:
    a = np.ones((16, 16), np.float32)

    def calls(count: int) -> int:
        for _ in range(count):
            blas.sgemm(1.0, a, a, beta=1.0, c=a)
            product()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    before = calls(500)
    assert calls(20_000) - before < 2048


def test_the_number_of_threads_does_not_change_a_bit() -> None:
    set_threads = ctypes.CFUNCTYPE(None, ctypes.c_int)(addresses()[SET_THREADS])
    m, n, k = 300, 280, 260
    rng = np.random.default_rng(7)
    a, b, c = rng.random((m, k), np.float32), rng.random((k, n), np.float32), np.empty((m, n), np.float32)
    results = set()
    try:
        for count in (1, 2, 3, 7):
            set_threads(count)
            at = a.ctypes.data, k, b.ctypes.data, n
            blas.cblas_sgemm(ROWS, NO_TRANS, NO_TRANS, m, n, k, 0.3, *at, 0.0, c.ctypes.data, n)
            results.add(c.tobytes())
    finally:
        set_threads(physical_cores())
    assert len(results) == 1
