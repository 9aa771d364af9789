"""What is done on Windows, with stand-ins for the system: it is not run there."""

from __future__ import annotations

import mmap
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

import pytest

from gemmlab.blas import native
from gemmlab.codegen import runtime
from gemmlab.core import windows
from gemmlab.core.errors import PeerError, UsageError
from gemmlab.core.hardware_windows import WindowsFacts, read_windows
from gemmlab.ops.footprint import available_bytes
from gemmlab.timing import process, process_windows
from gemmlab.timing.arena import map_place
from gemmlab.timing.process import WorkerProcess
from gemmlab.toolchain import cache

ECHO = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"
posix = pytest.mark.skipif(os.name != "posix", reason="the stand-ins are POSIX's")


def record(cpus: int, kind: int, level: int = 0, ways: int = 0, line: int = 0, nbytes: int = 0, sort: int = 0) -> bytes:
    """SYSTEM_LOGICAL_PROCESSOR_INFORMATION: an 8-byte mask, a kind, padding, and a union of 16 bytes."""
    union = struct.pack("<BBHII", level, ways, line, nbytes, sort).ljust(16, b"\0")
    return struct.pack("<QII", cpus, kind, 0) + union


TABLE = b"".join([
    record(0b0011, 0), record(0b1100, 0),  # two cores of two threads
    record(0b1111, 3), record(0b1111, 1),
    record(0b0011, 2, 1, 12, 64, 48 << 10, 2), record(0b0011, 2, 1, 8, 64, 32 << 10, 1),
    record(0b0011, 2, 2, 16, 64, 2 << 20), record(0b1100, 2, 2, 16, 64, 1 << 20),
    record(0b1111, 2, 3, 255, 64, 24 << 20),
])  # fmt: skip
REGISTRY: Mapping[str, str | int] = {
    "Identifier": "Intel64 Family 6 Model 143 Stepping 8", "VendorIdentifier": "GenuineIntel",
    "ProcessorNameString": "Intel(R) Xeon(R) Platinum 8480+   ", "~MHz": 2000,
}  # fmt: skip


def test_the_processor_is_told_by_registry_flags_and_table() -> None:
    info = read_windows(
        "AMD64", frozenset(range(4)), WindowsFacts(REGISTRY.get, {10, 38, 39, 40, 41}.__contains__, lambda: TABLE)
    )
    assert (info.arch, info.vendor, info.name) == ("x86_64", "GenuineIntel", "Intel(R) Xeon(R) Platinum 8480+")
    assert (info.family, info.model, info.stepping) == (6, 143, 8)
    assert (info.lanes, info.fma_units, info.nominal_ghz) == (16, 2, 2.0)
    assert (info.physical_cores, info.logical_cpus) == (2, 4)
    assert [(c.level, c.size_bytes, c.ways, c.shared_by) for c in info.caches] == [
        (1, 48 << 10, 12, 2), (2, 2 << 20, 16, 2), (3, 24 << 20, (24 << 20) // 64, 4),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("registry", "identity", "units"),
    [
        ({"Identifier": "ARMv8 (64-bit) Family 8 Model D0C Revision 301", "VendorIdentifier": "Ampere(R)",
          "ProcessorNameString": "Ampere(R) Altra(R) Processor", "CP 4000": 0x413FD0C1},
         ("ARM", "Ampere(R) Altra(R) Processor", 8, 0xD0C, 1), "Neoverse N1: 2 x 128 bits"),
        ({"Identifier": "ARMv8 (64-bit) Family 8 Model D40 Revision   1", "CP 4000": 0x411FD401},
         ("ARM", "Neoverse V1", 8, 0xD40, 1), "Neoverse V1: 4 x 128 bits"),
        ({"Identifier": "ARMv8 (64-bit) Family 8 Model D4C Revision   0", "VendorIdentifier": "Qualcomm",
          "ProcessorNameString": "Snapdragon (TM) 8cx Gen 3 @ 3.0 GHz"},
         ("Qualcomm", "Snapdragon (TM) 8cx Gen 3 @ 3.0 GHz", 8, 0xD4C, 0),
         "unknown processor: 2 units assumed"),
    ],
)  # fmt: skip
def test_an_arm_processor_is_told_by_its_main_id_register(
    registry: Mapping[str, str | int], identity: tuple[str, str, int, int, int], units: str
) -> None:
    info = read_windows("ARM64", frozenset({0}), WindowsFacts(registry.get, lambda _: False, lambda: b""))
    assert (info.vendor, info.name, info.family, info.model, info.stepping) == identity
    assert info.fma_rule == units


def test_a_silent_system_gets_what_is_usual() -> None:
    info = read_windows("ARM64", frozenset({0, 1}), WindowsFacts(lambda _: None, lambda _: False, lambda: b""))
    assert (info.arch, info.name, info.lanes) == ("aarch64", "unknown", 4)
    assert info.physical_cores == 2
    assert [(c.level, c.source) for c in info.caches] == [(1, "assumed"), (2, "assumed")]
    assert info.peak_gflops is None


@posix
def test_workers_take_turns_through_the_systems_own_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pipes and the thread that reads are as on Windows; starting, halting and going on are stand-ins."""
    done: list[str] = []

    def start(command: Sequence[str], environment: Mapping[str, str], errors: IO[bytes]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)

    def halt(worker: subprocess.Popen[bytes]) -> None:
        done.append("halt")
        worker.send_signal(signal.SIGSTOP)

    def go_on(worker: subprocess.Popen[bytes]) -> None:
        done.append("go on")
        worker.send_signal(signal.SIGCONT)

    monkeypatch.setattr(process, "_WINDOWS", True)
    for stand_in in (start, halt, go_on):
        monkeypatch.setattr(process_windows, stand_in.__name__, stand_in)
    with WorkerProcess("the peer", [sys.executable, "-c", ECHO], environment=os.environ) as worker:
        assert [worker.ask({"n": n}, 20)["n"] for n in range(3)] == [0, 1, 2]
    assert done == ["go on", "halt"] * 3
    mute = "import time; input(); time.sleep(60)"
    for script, seconds, told in ((mute, 0.2, "gave no answer within"), ("input()", 20, "died with exit code 0")):
        with (
            WorkerProcess("the peer", [sys.executable, "-c", script], environment=os.environ) as worker,
            pytest.raises(PeerError, match=told),
        ):
            worker.ask({}, seconds)


def test_a_virtual_environments_launcher_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[tuple[list[str], dict[str, str]]] = []
    monkeypatch.setattr(subprocess, "Popen", lambda words, env, **_: started.append((words, env)))
    monkeypatch.setattr(sys, "_base_executable", r"C:\Python\python.exe", raising=False)
    with Path(os.devnull).open("wb") as errors:
        process_windows.start([sys.executable, "-c", ""], {"A": "1"}, errors)
        process_windows.start(["other.exe"], {"A": "1"}, errors)
    assert started[0] == ([r"C:\Python\python.exe", "-c", ""], {"A": "1", "__PYVENV_LAUNCHER__": sys.executable})
    assert started[1] == (["other.exe"], {"A": "1"})


def test_shared_operands_have_a_name_there(monkeypatch: pytest.MonkeyPatch) -> None:
    mapped: list[tuple[int, int, str]] = []
    monkeypatch.setattr(mmap, "mmap", lambda fd, nbytes, tagname="": mapped.append((fd, nbytes, tagname)))
    map_place("gemmlab-7-ab", 4096)
    assert mapped == [(-1, 4096, "gemmlab-7-ab")]


def test_workspaces_are_mapped_without_flags_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(mmap, "MAP_PRIVATE")
    monkeypatch.delattr(mmap, "MADV_HUGEPAGE", raising=False)
    address = runtime.huge_pages(1000)
    assert address % runtime.HUGE_PAGE == 0


def test_free_memory_is_the_systems_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(windows, "available_memory", lambda: 12345)
    assert available_bytes() == 12345


def test_native_blas_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(UsageError, match=r"gemmlab\.blas\.sgemm works on Windows"):
        native.compiled()


def test_a_file_that_is_being_read_counts_as_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_from: Path, _to: Path) -> None:
        raise PermissionError(13, "used by another process")

    monkeypatch.setenv("GEMMLAB_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "win32")
    (tmp_path / "a.ref").write_text("b" * 64)
    monkeypatch.setattr(Path, "replace", refuse)
    assert cache.publish("a.ref", b"b" * 64)
    cache._warn.cache_clear()
    with pytest.warns(RuntimeWarning, match="cannot be cached"):
        assert not cache.publish("c.ref", b"b" * 64)
    cache._warn.cache_clear()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.ref"]


ABSENT = """
import mmap, os, signal, sys
for name in ("fcntl", "resource", "termios", "pwd", "grp", "tty", "pty"):
    sys.modules[name] = None
import subprocess, tempfile, multiprocessing, asyncio, numpy
for module, names in {
    os: "fork register_at_fork sched_getaffinity sched_setaffinity sysconf uname memfd_create waitid getloadavg",
    signal: "SIGSTOP SIGCONT SIGKILL pthread_sigmask",
    mmap: "MAP_PRIVATE MAP_ANONYMOUS PROT_READ PROT_WRITE MADV_HUGEPAGE",
}.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
import importlib, pkgutil
import gemmlab
for module in pkgutil.walk_packages(gemmlab.__path__, "gemmlab."):
    if not module.name.endswith("__main__") and not {"torch", "dask", "distributed"} & {*module.name.split(".")}:
        importlib.import_module(module.name)
import numpy as np
a = np.random.default_rng(0).standard_normal((70, 80), dtype=np.float32)
for threads in (1, 2):
    assert np.abs(gemmlab.gemm(a, a.T, threads=threads) - a.astype(float) @ a.T).max() < 1e-4
assert abs(gemmlab.sum(a) - a.sum(dtype=float)) < 1e-3
from gemmlab.timing.inventory import processor
assert processor(measure=False)["logical_cpus"] > 0
print("fine")
"""


@pytest.mark.in_turns(20)
@posix
def test_everything_imports_and_the_cpu_multiplies_without_what_only_posix_has() -> None:
    done = subprocess.run([sys.executable, "-c", ABSENT], capture_output=True, text=True, check=False, timeout=100)
    assert done.stdout == "fine\n", done.stderr
