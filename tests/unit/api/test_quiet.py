"""gemmlab says nothing unasked, tells the logger what it does, and opens no network connection."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.cuda_source import needs_compiler
from support.paths import ROOT

pytestmark = pytest.mark.slow
PRODUCT = "import numpy, gemmlab; a = numpy.ones((40, 30), 'f'); print(gemmlab.gemm(a, a.T)[0, 0])"
GUARD = '''
import sys

def refuse(event, args):
    """Refuse names of hosts and addresses of the internet; sockets between processes have neither."""
    if event == "socket.getaddrinfo" or event.startswith("socket.gethostby"):
        raise RuntimeError(f"NETWORK: {event} {args}")
    if event in ("socket.connect", "socket.sendto", "socket.bind") and isinstance(args[1], tuple):
        raise RuntimeError(f"NETWORK: {event} {args[1]}")

sys.addaudithook(refuse)
'''
"""What every Python process of these tests begins with (`sitecustomize`), children too."""


def python(tmp_path: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False, cwd=tmp_path, timeout=110,
        env={**os.environ, "GEMMLAB_CACHE_DIR": str(tmp_path / "cache"), **environment},
    )  # fmt: skip


def test_nothing_is_said_unasked(tmp_path: Path) -> None:
    for _ in range(2):
        done = python(tmp_path, "-c", PRODUCT)
        assert (done.returncode, done.stdout, done.stderr) == (0, "30.0\n", "")


def test_the_logger_tells_what_is_compiled_and_what_comes_from_the_cache(tmp_path: Path) -> None:
    program = f"import logging; logging.basicConfig(level=logging.DEBUG); {PRODUCT}"
    first, second = (python(tmp_path, "-c", program).stderr.splitlines() for _ in range(2))
    assert all(line.startswith("DEBUG:gemmlab:") for line in first + second)
    assert any("not in the cache" in line for line in first)
    assert any("compiled in" in line for line in first)
    assert second
    assert all(line.endswith(": in the cache") for line in second)


@pytest.fixture
def guarded(tmp_path: Path) -> dict[str, str]:
    folder = tmp_path / "guard"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(GUARD)
    return {"PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}


def test_the_guard_refuses_a_connection(tmp_path: Path, guarded: dict[str, str]) -> None:
    for attempt in ("create_connection(('192.0.2.1', 80), 1)", "getaddrinfo('example.org', 80)"):
        done = python(tmp_path, "-c", f"import socket; socket.{attempt}", **guarded)
        assert "NETWORK: socket." in done.stderr


def test_a_product_opens_no_connection(tmp_path: Path, guarded: dict[str, str]) -> None:
    done = python(tmp_path, "-c", PRODUCT, **guarded)
    assert (done.returncode, done.stdout) == (0, "30.0\n"), done.stderr


@needs_compiler
@pytest.mark.parametrize(
    "words",
    [
        ["check", "naive", "--device", "emulated", "--sizes", "17"],
        ["explain", "naive"],
        ["report", str(ROOT / "benchmarks/results/h200/climb-cuda.json"), "--kernels", "naive"],
        ["doctor", "--quick"],
        ["bench", "--sizes", "32", "--rounds", "3", "--processes", "1", "--peers", "none"],
    ],
    ids=lambda words: str(words[0]),
)
def test_no_verb_opens_a_connection(tmp_path: Path, guarded: dict[str, str], words: list[str]) -> None:
    done = python(tmp_path, "-m", "gemmlab", *words, **guarded)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "NETWORK" not in done.stdout + done.stderr
