"""The library call among threads and processes: many callers, forks, exits, sleeping workers, a full pool."""

from __future__ import annotations

import mmap
import os
import resource
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from gemmlab import api, gemm
from gemmlab.codegen import runtime as shared
from gemmlab.codegen.runtime import SLOTS, SLOTS_AT, Runtime

Array = npt.NDArray[np.float32]
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")


def pair(seed: int, n: int = 150) -> tuple[Array, Array, Array]:
    """Two matrices of small integers and their exact product."""
    rng = np.random.default_rng(seed)
    a, b = (rng.integers(-4, 5, (n, n)) for _ in range(2))
    # In integers, because NumPy's own BLAS has threads that forks would upset.
    return a.astype(np.float32), b.astype(np.float32), (a @ b).astype(np.float32)


def run_python(code: str, *, timeout: float = 30) -> subprocess.CompletedProcess[str]:
    text = "import numpy as np, os, threading, time\nimport gemmlab\nA = np.ones((300, 300), np.float32)\n" + code
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=timeout, check=False)


def wrong_after(seconds: float, seed: int, threads: int) -> int:
    """How many of the products computed for so long are wrong."""
    a, b, expected = pair(seed)
    wrong, deadline = 0, time.monotonic() + seconds
    while time.monotonic() < deadline:
        wrong += not np.array_equal(gemm(a, b, threads=threads), expected)
    return wrong


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_many_python_threads_at_once_get_their_own_results(threads: int) -> None:
    with ThreadPoolExecutor(8) as pool:
        wrong = list(pool.map(lambda seed: wrong_after(0.4, seed, threads), range(8)))
    assert wrong == [0] * 8


def in_child(seed: int, threads: int) -> int:
    """Fork a child that multiplies for a while and ends with 0 when all was right; its process id."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if wrong_after(0.2, seed, threads) == 0 else 2
        finally:
            os._exit(code)
    return child


@needs_fork
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_a_forked_child_and_its_parent_both_compute_right(threads: int) -> None:
    wrong_after(0.01, 0, threads)
    children = [in_child(seed, threads) for seed in (1, 2)]
    assert wrong_after(0.2, 3, threads) == 0
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]


@needs_fork
def test_a_fork_while_other_threads_multiply() -> None:
    stop = threading.Event()
    wrong: list[int] = []

    def busy(seed: int) -> None:
        a, b, expected = pair(seed)
        while not stop.is_set():
            if not np.array_equal(gemm(a, b, threads=2), expected):
                wrong.append(seed)

    workers = [threading.Thread(target=busy, args=(seed,)) for seed in range(3)]
    for worker in workers:
        worker.start()
    try:
        for seed in range(6):
            assert os.waitpid(in_child(seed, 2), 0)[1] == 0
    finally:
        stop.set()
        for worker in workers:
            worker.join()
    assert not wrong


@needs_fork
def test_a_child_of_a_child_computes_right() -> None:
    wrong_after(0.01, 0, 2)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = os.waitpid(in_child(1, 2), 0)[1] or (0 if wrong_after(0.05, 2, 2) == 0 else 2)
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0


@needs_fork
def test_a_fork_during_the_first_call_waits_for_it() -> None:
    done = run_python(
        "t = threading.Thread(target=lambda: gemmlab.gemm(A, A)); t.start(); time.sleep(0.02)\n"
        "child = os.fork()\n"
        "ok = (gemmlab.gemm(A, A, threads=2) == 300).all()\n"
        "if child == 0: os._exit(0 if ok else 3)\n"
        "t.join(); print(ok, os.waitpid(child, 0)[1])\n"
    )
    assert (done.stdout, done.returncode) == ("True 0\n", 0), done.stderr


def test_a_spawned_child_computes_right(tmp_path: Path) -> None:
    script = tmp_path / "spawning.py"
    script.write_text(
        "import multiprocessing, numpy, gemmlab\n"
        "def work(n):\n"
        "    a = numpy.full((n, n), 2, numpy.float32)\n"
        "    return bool((gemmlab.gemm(a, a, threads=2) == 4 * n).all())\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(2) as pool:\n"
        "        print(pool.map(work, [200, 300]))\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "[True, True]\n", done.stderr


@pytest.mark.parametrize("pause", [0.0, 0.05])
def test_the_interpreter_exits_at_once_whatever_the_workers_do(pause: float) -> None:
    code = f"gemmlab.gemm(A, A, threads=3); time.sleep({pause}); print(time.time())"
    done = run_python(code)
    assert done.returncode == 0, done.stderr
    assert time.time() - float(done.stdout) < 5


def test_the_interpreter_exits_while_a_daemon_thread_multiplies() -> None:
    code = (
        "B = np.ones((2000, 2000), np.float32)\n"
        "def on():\n"
        "    while True: gemmlab.gemm(B, B, threads=2)\n"
        "gemmlab.gemm(A, A)\n"
        "threading.Thread(target=on, daemon=True).start(); time.sleep(0.1)\n"
    )
    for _ in range(3):
        done = run_python(code)
        assert (done.returncode, done.stderr) == (0, "")


def test_idle_workers_cost_nothing() -> None:
    a, b, _ = pair(0, 400)
    gemm(a, b, threads=3)
    time.sleep(0.05)
    before = resource.getrusage(resource.RUSAGE_SELF)
    time.sleep(0.5)
    after = resource.getrusage(resource.RUSAGE_SELF)
    assert (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime) < 0.02


def test_the_interpreter_is_free_during_a_large_product() -> None:
    n = 1500
    a = np.ones((n, n), np.float32)
    out = np.empty((n, n), np.float32)
    gemm(a, a, out=out, threads=1)
    worker = threading.Thread(target=gemm, args=(a, a), kwargs={"out": out, "threads": 1})
    counted = 0
    worker.start()
    while worker.is_alive():
        counted += 1
        time.sleep(0)
    worker.join()
    assert counted > 100


def test_nothing_grows_over_many_small_calls() -> None:
    a, b, _ = pair(0, 16)
    out = np.empty((16, 16), np.float32)
    fortran = np.empty((16, 16), np.float32, order="F")

    def peak() -> int:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def calls(count: int) -> None:
        for _ in range(count):
            gemm(a, b, out=out)
            gemm(a, b)
            gemm(a, b, out=fortran, threads=2)

    calls(500)
    before, references = peak(), sys.getrefcount(out)
    calls(20_000)
    assert sys.getrefcount(out) == references
    assert peak() - before < 2048


def slots(runtime: Runtime) -> list[int]:
    return [runtime.word(SLOTS_AT + 16 * slot).value for slot in range(SLOTS)]


def test_more_callers_than_workspaces_all_finish(monkeypatch: pytest.MonkeyPatch) -> None:
    """With every workspace taken, a caller waits for one instead of failing."""
    wrong_after(0.01, 0, 1)
    runtime = shared.runtime()
    taken = [slot for slot, flag in enumerate(slots(runtime)) if flag == 0]
    monkeypatch.setattr(Runtime, "add_slot", lambda _self: False)
    for slot in taken:
        runtime.word(SLOTS_AT + 16 * slot).value = 1
    a, b, expected = pair(4)
    with ThreadPoolExecutor(6) as pool:
        waiting = [pool.submit(gemm, a, b) for _ in range(6)]
        time.sleep(0.05)
        assert not any(one.done() for one in waiting)
        runtime.word(SLOTS_AT + 16 * taken[0]).value = 0
        assert all(np.array_equal(one.result(timeout=20), expected) for one in waiting)
    for slot in taken:
        runtime.word(SLOTS_AT + 16 * slot).value = 0


def test_workspaces_are_added_up_to_their_number_and_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "huge_pages", lambda _nbytes: 4096)
    runtime = Runtime()
    assert [runtime.add_slot() for _ in range(SLOTS)] == [True] * SLOTS
    assert not runtime.add_slot()
    assert slots(runtime) == [0] * SLOTS


def test_a_workspace_that_memory_lacks_is_a_memory_error_and_the_library_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wrong_after(0.01, 0, 2)
    runtime = shared.runtime()
    taken = [slot for slot, flag in enumerate(slots(runtime)) if flag == 0]
    for slot in taken:
        runtime.word(SLOTS_AT + 16 * slot).value = 1
    a, b, expected = pair(5)
    try:
        with monkeypatch.context() as patch:

            def full(*_args: object, **_options: object) -> Any:
                raise OSError(12, "Cannot allocate memory")

            patch.setattr(mmap, "mmap", full)
            with pytest.raises(MemoryError, match=r"for a workspace.*Cannot allocate memory"):
                gemm(a, b)
    finally:
        for slot in taken:
            runtime.word(SLOTS_AT + 16 * slot).value = 0
    assert np.array_equal(gemm(a, b), expected)


def test_threads_that_the_system_refuses_are_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, expected = pair(6)
    gemm(a, b)
    runtime = shared.runtime()
    pages: list[int] = []
    really = shared.huge_pages

    def counted(nbytes: int) -> int:
        pages.append(nbytes)
        return really(nbytes)

    monkeypatch.setattr("_thread.start_new_thread", _refuse)
    monkeypatch.setattr(shared, "huge_pages", counted)
    before = runtime.workers
    for _ in range(5):
        assert np.array_equal(gemm(a, b, threads=before + 3), expected)
    assert runtime.workers == before
    assert len(pages) <= 1, "a workspace was thrown away each time"


def _refuse(*_args: object) -> int:
    raise RuntimeError("can't start new thread")


def test_workers_are_bounded() -> None:
    a, b, expected = pair(7)
    assert np.array_equal(gemm(a, b, threads=1000), expected)
    assert shared.runtime().workers <= 4 * (os.cpu_count() or 1)


def test_the_general_path_alone_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, expected = pair(8)
    gemm(a, b)
    monkeypatch.setattr(api, "_entry", None)
    assert wrong_after(0.05, 9, 2) == 0
    assert np.array_equal(gemm(a, b), expected)
