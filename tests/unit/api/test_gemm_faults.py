"""The library call when something comes between: interrupts while it compiles, starts threads and runs; no memory."""

from __future__ import annotations

import _thread
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gemmlab import gemm
from gemmlab.codegen import runtime as shared
from gemmlab.toolchain import cache
from support.exact import pair

pytestmark = pytest.mark.skipif(os.name != "posix", reason="POSIX signals and limits")
HEAD = (
    "import os, resource, signal, time\nimport numpy as np, gemmlab\n"
    "signal.signal(signal.SIGINT, signal.default_int_handler)  # which a process in the background does not inherit\n"
)


def start(code: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", HEAD + code], env={**os.environ, **environment}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def interrupt(process: subprocess.Popen[str]) -> None:
    """Ctrl-C, unless it has ended."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)


@pytest.mark.slow
def test_an_interrupt_while_it_compiles_leaves_whole_files_and_a_library_that_works(tmp_path: Path) -> None:
    process = start(
        "a = np.ones((40, 50), np.float32)\nprint('go', flush=True)\n"
        "try: gemmlab.gemm(a, a.T)\n"
        "except KeyboardInterrupt: print('interrupted')\n"
        "print(gemmlab.gemm(a, a.T).sum())\n",
        GEMMLAB_CACHE_DIR=str(tmp_path),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "go\n"
    time.sleep(0.3)
    interrupt(process)
    assert process.communicate(timeout=100) == ("interrupted\n80000.0\n", "")
    assert [path.suffix for path in tmp_path.iterdir()] == [".bin"]
    assert all(cache.decode(path.read_bytes()) for path in tmp_path.iterdir())


@pytest.mark.in_turns(20)
def test_interrupts_without_end_harm_no_product() -> None:
    """Ctrl-C every few milliseconds, while threads are started and while they work."""
    process = start(
        "a = np.random.default_rng(0).integers(-4, 5, (120, 120))\n"
        "expected, a = (a @ a).astype(np.float32), a.astype(np.float32)\n"
        "armed, hits, done, wrong = False, 0, 0, 0\n"
        "def handler(*_):\n"
        "    if armed: raise KeyboardInterrupt\n"
        "signal.signal(signal.SIGINT, handler)\n"
        "gemmlab.gemm(a, a, threads=1)\nprint('go', flush=True)\nend = time.monotonic() + 2\n"
        "while time.monotonic() < end:\n"
        "    try:\n"
        "        armed = True\n"
        "        while time.monotonic() < end:\n"
        "            wrong += not np.array_equal(gemmlab.gemm(a, a, threads=2 + done % 6), expected)\n"
        "            done += 1\n"
        "        armed = False\n"
        "    except KeyboardInterrupt:\n"
        "        armed = False\n"
        "        hits += 1\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "print(hits > 20, done > 20, wrong, flush=True)\n"
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "go\n"
    while process.poll() is None:
        interrupt(process)
        time.sleep(0.005)
    assert process.communicate(timeout=30) == ("True True 0\n", "")
    assert process.returncode == 0


def test_a_worker_whose_start_is_interrupted_keeps_its_workspace(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, expected = pair(3)
    gemm(a, b)
    runtime = shared.Runtime()
    runtime.workspace_bytes = 4096
    monkeypatch.setattr(runtime, "_worker", None, raising=False)
    spaces: list[int] = []

    def started(_function: object, arguments: tuple[Any, ...]) -> int:
        spaces.append(arguments[1])
        if len(spaces) == 1:
            raise KeyboardInterrupt
        return 1

    monkeypatch.setattr(_thread, "start_new_thread", started)
    with pytest.raises(KeyboardInterrupt):
        runtime.ensure_workers(2)
    runtime.ensure_workers(3)
    assert len(spaces) == len(set(spaces)) == 3
    assert np.array_equal(gemm(a, b), expected)


@pytest.mark.in_turns(20)
def test_when_memory_runs_out_the_library_says_so_and_goes_on() -> None:
    process = start(
        "a = np.ones((20000, 3), np.float32)\n"
        "small = np.ones((50, 50), np.float32)\n"
        "gemmlab.gemm(small, small, threads=2), gemmlab.blas.pointers()\n"
        "held = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (held + (200 << 20),) * 2)\n"
        "for call in (gemmlab.gemm, lambda a, b, **o: gemmlab.blas.sgemm(1, a, b, trans_b=1)):\n"
        "    try: call(a, a, trans_b=True); print('no error')\n"
        "    except MemoryError: print('MemoryError')\n"
        "    print((gemmlab.gemm(small, small, threads=2) == 50).all())\n"
    )
    assert process.communicate(timeout=60) == ("MemoryError\nTrue\n" * 2, "")


@pytest.mark.in_turns(20)
@pytest.mark.sampled(4)
@pytest.mark.parametrize("state", ["cold", "warm", "loaded"])
@pytest.mark.parametrize("room", [0, 150, 200, 230, 260, 320])
def test_the_first_call_with_little_memory_is_right_or_a_memory_error(tmp_path: Path, state: str, room: int) -> None:
    """LLVM aborts the process where it gets none; `room` is what the process may take beside what it has, in MiB."""
    gemm(np.ones((4, 4), np.float32), np.ones((4, 4), np.float32))
    process = start(
        ("from gemmlab.ir import llvm\nllvm.binding()\n" if state == "loaded" else "")
        + "a, c = np.ones((40, 50), np.float32), np.full((40, 40), 7, np.float32)\n"
        "held = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        f"resource.setrlimit(resource.RLIMIT_AS, (held + ({room} << 20),) * 2)\n"
        "for _ in range(2):\n"
        "    try:\n"
        "        gemmlab.gemm(a, a.T, out=c)\n"
        "        print('product', (c == 50).all())\n"
        "    except MemoryError:\n"
        "        print('MemoryError', (c == 7).all())\n",
        **({"GEMMLAB_CACHE_DIR": str(tmp_path)} if state == "cold" else {}),
    )
    said, errors = process.communicate(timeout=200)
    assert (process.returncode, errors) == (0, "")
    assert said in ("product True\n" * 2, "MemoryError True\n" * 2)
    if room in {0, 320}:
        assert said.startswith("product") == bool(room)


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("call", ["gemmlab.gemm(a, a.T)", "gemmlab.sum(a, axis=0)", "gemmlab.sgemm(1, a, a.T)"])
def test_modules_are_imported_whole_or_not_at_all(call: str) -> None:
    """A shared library may find no room where memory for objects is left: `hashlib` goes on without its functions."""
    process = start(
        "a = np.ones((40, 50), np.float32)\n"
        "for kilobytes in range(0, 700, 97):\n"
        "    child = os.fork()\n"
        "    if child:\n"
        "        assert os.waitpid(child, 0)[1] == 0, kilobytes\n"
        "        continue\n"
        "    held = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "    resource.setrlimit(resource.RLIMIT_AS, (held + (kilobytes << 10), resource.RLIM_INFINITY))\n"
        f"    try: {call}\n"
        "    except MemoryError: pass\n"
        "    else: os._exit(1)\n"
        "    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)\n"
        f"    assert {call}.max() >= 40\n"
        "    import hashlib\n"
        "    assert hashlib.algorithms_guaranteed <= {*dir(hashlib)}\n"
        "    os._exit(0)\n"
        "print('done')\n"
    )
    assert process.communicate(timeout=200) == ("done\n", "")


@pytest.mark.in_turns(20)
def test_a_worker_without_memory_leaves_the_work_to_the_others() -> None:
    process = start(
        "from gemmlab.codegen import runtime as shared\n"
        "a = np.random.default_rng(0).integers(-4, 5, (300, 300))\n"
        "expected, a = (a @ a).astype(np.float32), a.astype(np.float32)\n"
        "gemmlab.gemm(a, a, threads=1), gemmlab.sum(a, threads=1)\n"
        "space = shared.runtime().workspace_bytes + shared.HUGE_PAGE\n"
        "for spaces in (0, 1, 2):\n"
        "    held = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "    more = spaces - shared.runtime().workers\n"
        "    soft = held + more * (space + (9 << 20)) + (1 << 20)\n"
        "    resource.setrlimit(resource.RLIMIT_AS, (soft, resource.RLIM_INFINITY))\n"
        "    found = [np.array_equal(gemmlab.gemm(a, a, threads=4), expected) for _ in range(20)]\n"
        "    total = gemmlab.sum(a, threads=4) == expected.dtype.type(a.astype(int).sum())\n"
        "    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))\n"
        "    print(all(found), total, shared.runtime().workers <= spaces)\n"
        "print(np.array_equal(gemmlab.gemm(a, a, threads=4), expected), shared.runtime().workers)\n"
    )
    assert process.communicate(timeout=100) == ("True True True\n" * 3 + "True 3\n", "")
