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
HEAD = "import os, resource, signal, time\nimport numpy as np, gemmlab\n"


def start(code: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", HEAD + code], env={**os.environ, **environment}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def interrupt(process: subprocess.Popen[str]) -> None:
    """Ctrl-C, unless it has ended."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)


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
