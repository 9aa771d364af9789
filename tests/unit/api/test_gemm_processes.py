"""The library call among threads and processes: many callers, forks, exits, sleeping workers."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from gemmlab import api, gemm
from gemmlab.codegen import runtime as shared
from gemmlab.codegen.runtime import SLOTS_AT
from support.exact import pair, slots, wrong_after

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
# JAX, if an earlier test of this process has imported it, warns of every fork.
pytestmark = pytest.mark.filterwarnings(r"ignore:os.fork\(\) was called:RuntimeWarning")


def run_python(code: str, *, timeout: float = 30) -> subprocess.CompletedProcess[str]:
    text = "import numpy as np, os, threading, time\nimport gemmlab\nA = np.ones((300, 300), np.float32)\n" + code
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=timeout, check=False)


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


@pytest.mark.in_turns(20)
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
def test_a_child_starts_with_free_workspaces_and_workers_of_its_own() -> None:
    wrong_after(0.01, 0, 2)
    runtime = shared.runtime()
    (taken, *_) = [slot for slot, flag in enumerate(slots(runtime)) if flag == 0]
    # As another thread of the parent would hold it, which the child has not got.
    runtime.word(SLOTS_AT + 16 * taken).value = 1
    child = os.fork()
    if child == 0:
        code = 1
        try:
            fresh = slots(runtime)[taken] == 0 and runtime.workers == 0
            code = 0 if fresh and wrong_after(0.05, 1, 2) == 0 and runtime.workers == 1 else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    runtime.word(SLOTS_AT + 16 * taken).value = 0


@pytest.mark.in_turns(20)
@needs_fork
@pytest.mark.parametrize("seconds", [0.002, 0.02])
def test_a_fork_during_the_first_call_waits_for_it(seconds: float) -> None:
    done = run_python(
        f"t = threading.Thread(target=lambda: gemmlab.gemm(A, A)); t.start(); time.sleep({seconds})\n"
        "child = os.fork()\n"
        "ok = (gemmlab.gemm(A, A, threads=2) == 300).all()\n"
        "if child == 0: os._exit(0 if ok else 3)\n"
        "t.join(); print(ok, os.waitpid(child, 0)[1])\n"
    )
    assert (done.stdout, done.returncode) == ("True 0\n", 0), done.stderr


@pytest.mark.in_turns(20)
@needs_fork
def test_a_fork_takes_our_locks_before_all_that_a_first_call_needs() -> None:
    code = (
        "import os, threading; ours = []; kind = type(threading.RLock())\n"
        "def register(before=None, **others):\n"
        "    if before is not None: ours.append(isinstance(getattr(before, '__self__', None), kind))\n"
        "os.register_at_fork = register\n"
        "import numpy as np, gemmlab; A = np.ones((300, 300), np.float32)\n"
        "for precision in ('highest', 'float32'): gemmlab.gemm(A, A, precision=precision)\n"
        "gemmlab.gemm(A, gemmlab.pack(A)); gemmlab.sum(A)\n"
        "import gemmlab.blas.native as native; native.addresses()\n"
        "print(ours)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.returncode) == ("[False, True, True, True]\n", 0), done.stderr


@pytest.mark.in_turns(20)
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


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("pause", [0.0, 0.05])
def test_the_interpreter_exits_at_once_whatever_the_workers_do(pause: float) -> None:
    code = f"gemmlab.gemm(A, A, threads=3); time.sleep({pause}); print(time.time())"
    done = run_python(code)
    assert done.returncode == 0, done.stderr
    assert time.time() - float(done.stdout) < 5


@pytest.mark.in_turns(20)
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


@pytest.mark.in_turns(20)
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


@pytest.mark.slow
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


def test_the_general_path_alone_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, expected = pair(8)
    gemm(a, b)
    monkeypatch.setattr(api, "_entry", None)
    assert wrong_after(0.05, 9, 2) == 0
    assert np.array_equal(gemm(a, b), expected)
